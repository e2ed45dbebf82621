"""Which cron jobs are due, and when they are due next.

The next time is the first one strictly after now (and after the one that is due), in the job's own time zone, UTC if it
has none. So ticks that were missed while nobody scheduled run once, not one after another.

A cron job is a *template*: by default its own id is pushed, as the spec's script does, and a tick is skipped while an
earlier one is under way. With `cronMode: instance` each tick makes a job of its own, `<id>:<due ms>`, with a result of
its own; `overlap: skip` then skips a tick while the last instance has not ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jobwire.backends.bridgemq import codec
from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Argument
from jobwire.cron import Cron
from jobwire.errors import InvalidOption

_BATCH = 100


@dataclass(frozen=True, slots=True)
class Tick:
    """One cron job that is due."""

    job_id: str
    due: float
    next_due: int | None
    instance: str = ""
    text: bytes = b""
    """The instance's data; or the reason why there is no next time."""
    skip_overlap: bool = False

    def arguments(self) -> Sequence[Argument]:
        following: Argument = "" if self.next_due is None else self.next_due
        overlap = "s" if self.skip_overlap else ""
        return self.job_id, f"{self.due:.17g}", following, self.instance, self.text, overlap


class Crontab:
    """The cron jobs of a namespace."""

    def __init__(self, store: RedisStore, keys: Keys) -> None:
        self._store = store
        self._keys = keys

    async def due(self, now_ms: int) -> list[Tick]:
        rows: list[Any] = await self._store.call(
            "ZRANGEBYSCORE", self._keys.cron, "-inf", now_ms, "WITHSCORES", "LIMIT", 0, _BATCH
        )
        pairs = scored(rows)
        if not pairs:
            return []
        data = await self._store.calls([("GET", self._keys.data(job_id)) for job_id, _ in pairs])
        return [tick_of(job_id, score, raw, now_ms) for (job_id, score), raw in zip(pairs, data, strict=True)]


def tick_of(job_id: str, due: float, raw: bytes | None, now_ms: int) -> Tick:
    document = codec.parse(raw) if raw else None
    if document is None:
        return Tick(job_id, due, None, text=b"the job's data is not a JSON object")
    schedule, private = codec.mapping(document.get("schedule")), codec.mapping(document.get("x"))
    try:
        following = next_ms(str(schedule.get("cron")), schedule.get("timezone"), max(now_ms, int(due)))
    except InvalidOption as error:
        return Tick(job_id, due, None, text=str(error).encode(errors="replace"))
    if private.get("cronMode") != "instance":
        return Tick(job_id, due, following)
    instance = f"{job_id}:{int(due)}"
    copy = {**document, "jobId": instance, "schedule": {}, "createdAt": now_ms, "x": {**private, "cronId": job_id}}
    return Tick(job_id, due, following, instance, codec.rewritten(copy), private.get("overlap") == "skip")


def next_ms(expression: str, timezone: Any, after_ms: int) -> int:
    return Cron.parse(expression).next_ms(after_ms, timezone if isinstance(timezone, str) and timezone else "UTC")


def scored(rows: list[Any]) -> list[tuple[str, float]]:
    """Members with their scores, whether the driver pairs them or not."""
    if rows and isinstance(rows[0], (tuple, list)):
        return [(member.decode(errors="replace"), float(score)) for member, score in rows]
    return [
        (member.decode(errors="replace"), float(score)) for member, score in zip(rows[::2], rows[1::2], strict=True)
    ]
