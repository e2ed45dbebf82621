"""Whatever another client wrote among good jobs: these complete, the worker lives, rests when idle, and logs little."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from awaiting import eventually
from jobwire import NewJob, Queue, State, Worker
from jobwire.backends.bullmq.keys import Keys
from jobwire.embedded import Server

GOOD = 12
RESTING = 0.5
SCENES = 5
"""How many workers, each with a queue of its own, run side by side: most of their time is waiting."""


@dataclass(frozen=True)
class Foreign:
    """One entry of another client: where it stands, what its key is, and what is beside it."""

    job_id: bytes
    place: str
    score: str
    kind: str
    fields: dict[str, bytes]
    beside: dict[str, str]


numbers = st.sampled_from(
    [b"nan", b"inf", b"-inf", b"-1", b"0", b"1", b"2.5", b"1e400", b"9" * 40, b"", b"0x1F", b"abc"]
)
texts = st.sampled_from([b"null", b"[]", b"{}", b"{", b'"x"', b"[" * 2000, b'{"a":1e400}', b"\xff\xfe", b"\x00", b"1"])
options = st.sampled_from(
    [
        b'{"attempts":1e308,"backoff":{"type":5,"delay":"x"}}',
        b'{"attempts":-3,"removeOnComplete":{"age":-1,"count":-5},"removeOnFail":"yes"}',
        b'{"attempts":3,"backoff":{"type":"exponential","delay":1e308},"stackTraceLimit":-1}',
        b'{"attempts":2,"backoff":-7,"lifo":"a","priority":"b","delay":[]}',
        b'{"removeOnComplete":{"age":1e300,"count":1e300},"attempts":"9"}',
        b'{"repeat":{"every":-1,"count":"x"},"repeatJobKey":7}',
        b'{"repeat":{"pattern":"nonsense","tz":"Nowhere/None","limit":"x","endDate":"never"}}',
        b'{"repeat":{"every":1e300,"count":1e300,"endDate":1e300},"prevMillis":"x"}',
    ]
)
field = st.one_of(numbers, texts, options, st.binary(max_size=12))
hashes = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("timestamp", "delay", "priority", "processedOn", "ats", "atm", "stc", "finishedOn"), field),
        **dict.fromkeys(
            ("name", "data", "progress", "returnvalue", "stacktrace", "failedReason", "pb", "nrjid"), field
        ),
        "opts": st.one_of(options, field),
        "parentKey": st.sampled_from([b"", b"nowhere", b"P:q:wait", b"P:q:a-string", b"P:q:a-list", b"\xff", b":"]),
        "parent": st.sampled_from(
            [b'{"id":"x","fpof":true}', b'{"id":1e300,"cpof":1}', b'{"id":null,"idof":true}', b"["]
        ),
        "deid": st.sampled_from([b"", b"k", b"a-list", b"\xff"]),
        "rjk": st.sampled_from([b"", b"s", b"a:b:c:d:e", b"a-string", b"\xff"]),
        "defa": field,
    },
)
foreign = st.builds(
    Foreign,
    job_id=st.one_of(
        st.binary(min_size=1, max_size=8).map(b"z".__add__), st.sampled_from([b"", b"0", b"0:1", b"a:b", b"\xff"])
    ),
    place=st.sampled_from(["wait", "paused", "prioritized", "delayed", "active"]),
    score=st.sampled_from(["inf", "-inf", "-5", "0", "1", "1e300", "7351231961952256"]),
    kind=st.sampled_from(["hash", "hash", "hash", "hash", "string", "list", "set", "zset", "stream", "none"]),
    fields=hashes,
    beside=st.dictionaries(
        st.sampled_from(["lock", "logs", "dependencies", "processed", "failed", "unsuccessful"]),
        st.sampled_from(["string", "list", "hash"]),
        max_size=2,
    ),
)


entries = st.lists(foreign, min_size=1, max_size=GOOD, unique_by=lambda one: one.job_id)


async def write(redis: Redis, key: bytes, kind: str, fields: dict[str, bytes] | None = None) -> None:
    match kind:
        case "hash":
            await redis.hset(key, mapping=fields or {"x": b"1"})  # type: ignore[arg-type]
        case "string":
            await redis.set(key, b"text")
        case "list":
            await redis.rpush(key, b"item")
        case "set":
            await redis.sadd(key, b"item")
        case "zset":
            await redis.zadd(key, {b"item": 1})
        case "stream":
            await redis.xadd(key, {b"item": b"1"})
        case _:
            pass


async def plant(redis: Redis, keys: Keys, one: Foreign) -> None:
    key = keys.base.encode() + one.job_id
    if one.job_id:
        fields = {name: value.replace(b"P:", keys.prefix.encode() + b":") for name, value in one.fields.items()}
        await redis.delete(key)
        await write(redis, key, one.kind, fields)
        for word, kind in one.beside.items():
            await write(redis, key + b":" + word.encode(), kind)
    where = keys.base + one.place
    if one.place in ("prioritized", "delayed"):
        await redis.execute_command("ZADD", where, one.score, one.job_id)
    else:
        await redis.lpush(where, one.job_id)


async def scene(url: str, planted: list[Foreign]) -> None:
    prefix = f"test-{uuid.uuid4().hex[:12]}"
    keys, address = Keys(prefix, "q"), f"bullmq+{url}?prefix={prefix}"
    done: set[int] = set()

    async def handle(job: Any) -> None:
        if isinstance(job.data, dict) and "good" in job.data:
            done.add(job.data["good"])

    async with Redis.from_url(url) as redis, Queue("q", address) as queue:
        await write(redis, f"{keys.base}a-string".encode(), "string")
        await write(redis, f"{keys.base}a-list".encode(), "list")
        await write(redis, f"{keys.base}de:a-list".encode(), "list")
        await write(redis, f"{keys.base}repeat:a-string".encode(), "string")
        good: list[str] = []
        for number in range(GOOD):
            options: dict[str, Any] = [{}, {"priority": 3}, {"delay": 0.05}, {"attempts": 2}][number % 4]
            good.append((await queue.add_many([NewJob({"good": number}, **options)]))[0].id)
            if number < len(planted):
                await plant(redis, keys, planted[number])
        worker = Worker("q", handle, address, concurrency=3, lease=0.5, recover_every=0.1, max_backoff=0.1)
        async with worker:
            await eventually(lambda: len(done) == GOOD, within=30)

            async def completed() -> bool:
                found = [await queue.get(job_id) for job_id in good]
                # A rule of a foreign job may have cleared the set: how long finished jobs stay is for all of a queue.
                return all(job is None or job.state is State.COMPLETED for job in found)

            await eventually(completed, within=30)
            await at_rest(worker)
            assert worker.running
        await redis.delete(*[key async for key in redis.scan_iter(match=f"{prefix}:*", count=100_000)])


async def at_rest(worker: Worker) -> None:
    """Waits until the worker asks for work now and then only: foreign jobs with attempts may go on for a moment.

    Calls are counted rather than processor time, of which a worker gets little on a busy machine."""
    deadline = time.monotonic() + 15
    while True:
        before = worker.stats.calls
        await asyncio.sleep(RESTING)
        calls = worker.stats.calls - before
        if calls <= 10:
            return
        assert time.monotonic() < deadline, f"an idle worker makes {calls / RESTING:.0f} calls a second"


def never_due(score: str) -> list[Foreign]:
    return [Foreign(b"x", "delayed", score, "hash", {"name": b"n", "data": b"1", "opts": b"{}"}, {})]


@pytest.mark.slow
@pytest.mark.timeout(900)
@given(st.lists(entries, min_size=SCENES, max_size=SCENES))
@example([never_due("inf"), never_due("-5"), never_due("-inf"), never_due("1e300")])
@settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_good_jobs_complete_whatever_is_among_them(
    jobwire_valkey: Server, caplog: pytest.LogCaptureFixture, scenes: list[list[Foreign]]
) -> None:
    async def side_by_side() -> None:
        await asyncio.gather(*(scene(jobwire_valkey.url, planted) for planted in scenes))

    caplog.clear()
    with caplog.at_level(logging.INFO, "jobwire"):
        asyncio.run(side_by_side())
    allowed = sum(20 + 10 * len(planted) for planted in scenes)
    assert len(caplog.records) <= allowed, [record.getMessage() for record in caplog.records]
