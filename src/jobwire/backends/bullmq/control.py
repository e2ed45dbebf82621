"""Changes to single jobs, to all jobs of a kind, to the limits of a queue, to its event stream and unique keys."""

from __future__ import annotations

from collections.abc import Mapping

from jobwire.backend import Acted
from jobwire.backends.bullmq.codec import milliseconds
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.rules import MAX_PRIORITY
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Scripts
from jobwire.errors import InvalidOption
from jobwire.model import Limits, State

DEFAULT_EVENTS = 10_000
_ANSWERS = {1: Acted.DONE, 0: Acted.NOT_FOUND, -1: Acted.WRONG_STATE}
_THROTTLED = 9007199254740991
"""What the counter of a rate limit is set to when it is to be over any limit."""


async def update_data(scripts: Scripts, keys: Keys, job_id: str, data: bytes) -> Acted:
    return _ANSWERS[await scripts.run("update_data", [keys.base], [job_id, data])]


async def change_priority(scripts: Scripts, keys: Keys, job_id: str, priority: int, front: bool) -> Acted:
    if not 0 <= priority <= MAX_PRIORITY:
        raise InvalidOption("priority", priority, f"must lie between 0 (first of all) and {MAX_PRIORITY}")
    return _ANSWERS[await scripts.run("change_priority", [keys.base], [job_id, priority, int(front)])]


async def change_delay(scripts: Scripts, keys: Keys, job_id: str, delay: float) -> Acted:
    args = [job_id, milliseconds(delay), await scripts.clock.now_ms()]
    return _ANSWERS[await scripts.run("change_delay", [keys.base], args)]


async def clear_logs(store: RedisStore, keys: Keys, job_id: str, keep: int) -> Acted:
    logs = keys.logs(job_id)
    clear = ("LTRIM", logs, -keep, -1) if keep else ("DEL", logs)
    found, _ = await store.calls([("EXISTS", keys.job(job_id)), clear])
    return Acted.DONE if found else Acted.NOT_FOUND


async def retry_all(scripts: Scripts, keys: Keys, state: State, before: float, limit: int) -> int:
    return await scripts.run("move_all", [keys.base], [state.value, round(before * 1000), limit])


async def promote_all(scripts: Scripts, keys: Keys, limit: int) -> int:
    return await scripts.run("move_all", [keys.base], [State.DELAYED.value, "+inf", limit])


async def limits(store: RedisStore, keys: Keys) -> Limits:
    (concurrency, most, duration), used, left = await store.calls(
        [("HMGET", keys.meta, "concurrency", "max", "duration"), ("GET", keys.limiter), ("PTTL", keys.limiter)]
    )
    limit = _number(most)
    blocked = left > 0 and (_number(used) or 0) >= (_THROTTLED if limit is None else limit)
    return Limits(
        concurrency=_number(concurrency),
        rate=None if limit is None else (limit, (_number(duration) or 0) / 1000),
        blocked_for=left / 1000 if blocked else 0.0,
    )


async def limit_rate(store: RedisStore, keys: Keys, rate: tuple[int, float] | None) -> None:
    if rate is None:
        await store.call("HDEL", keys.meta, "max", "duration")
    else:
        await store.call("HSET", keys.meta, "max", rate[0], "duration", max(1, milliseconds(rate[1])))


async def limit_concurrency(store: RedisStore, keys: Keys, concurrency: int | None) -> None:
    if concurrency is None:
        await store.call("HDEL", keys.meta, "concurrency")
    else:
        await store.call("HSET", keys.meta, "concurrency", concurrency)


async def throttle(store: RedisStore, keys: Keys, delay: float) -> None:
    if delay > 0:
        await store.call("SET", keys.limiter, _THROTTLED, "PX", max(1, milliseconds(delay)))
    else:
        await store.call("DEL", keys.limiter)


async def publish(store: RedisStore, keys: Keys, event: str, fields: Mapping[str, str]) -> str:
    """Trimmed to the queue's own limit; Node's producer of events would cut the stream to 1000."""
    kept = _number(await store.call("HGET", keys.meta, "opts.maxLenEvents")) or DEFAULT_EVENTS
    parts = [part for pair in fields.items() for part in pair]
    raw_id: bytes = await store.call("XADD", keys.events, "MAXLEN", "~", kept, "*", "event", event, *parts)
    return raw_id.decode()


async def trim_events(store: RedisStore, keys: Keys, keep: int) -> int:
    return await store.call("XTRIM", keys.events, "MAXLEN", "~", keep)


async def limit_events(store: RedisStore, keys: Keys, keep: int) -> None:
    await store.call("HSET", keys.meta, "opts.maxLenEvents", keep)


async def unique_owner(store: RedisStore, keys: Keys, key: str) -> str | None:
    owner: bytes | None = await store.call("GET", keys.unique(key))
    return owner.decode(errors="replace") if owner is not None else None


async def release_unique(store: RedisStore, keys: Keys, key: str) -> bool:
    return bool(await store.call("DEL", keys.unique(key)))


def _number(value: bytes | None) -> int | None:
    try:
        return int(float(value)) if value is not None else None
    except (ValueError, OverflowError):
        return None
