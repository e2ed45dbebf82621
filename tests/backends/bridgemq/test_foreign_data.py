"""Whatever another client wrote into the namespace: good jobs among it are done, no worker dies or spins, and what
can't be run is failed or set aside with a reason."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as some
from redis.asyncio import Redis

from awaiting import eventually
from jobwire import NewJob, Queue, Worker

GOOD = 12
SCENES = 4
"""How many workers, each with a namespace of its own, run side by side: most of their time is waiting."""
FIELDS = ("type", "payload", "schedule", "retry", "priority", "target", "rateLimit", "createdAt", "attempts", "x")
NESTED = {
    "schedule": ("delay", "runAt", "cron", "timezone"),
    "retry": ("attempts", "backoff", "skipOn", "rerouteOn"),
    "backoff": ("type", "delay", "maxDelay", "jitter"),
    "target": ("server", "stack", "capabilities", "region", "mode"),
    "rateLimit": ("maxConcurrent", "maxPerMinute"),
    "x": ("timeoutMs", "cronKey", "cronMode", "overlap"),
}

numbers = some.one_of(
    some.integers(-5, 5),
    some.sampled_from([2**31, 2**53, 2**63, 10**400, -(10**400), 1e308, -1e308, 5e-324, 0.5]),
    some.floats(allow_nan=False, allow_infinity=False),
)
scalars = some.one_of(some.none(), some.booleans(), numbers, some.text(max_size=8))
values = some.recursive(
    scalars,
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def objects(name: str) -> some.SearchStrategy:
    """An object of the spec in which every field may be anything."""
    fields = {field: objects(field) if field in NESTED else values for field in NESTED[name]}
    return some.fixed_dictionaries({}, optional=fields) | values


documents = some.fixed_dictionaries(
    {"type": some.just("mail") | values},
    optional={name: objects(name) if name in NESTED else values for name in FIELDS if name != "type"},
)
texts = some.one_of(
    documents.map(lambda document: json.dumps(document).encode()),
    documents.map(lambda document: json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    some.binary(max_size=20),
    some.sampled_from(
        [
            b'{"type":"mail","payload":NaN}',
            b'{"type":"mail","attempts":1e400,"retry":{"attempts":1e999}}',
            b'{"type":"mail","rateLimit":{"maxConcurrent":Infinity}}',
            b'{"type":"mail","payload":' + b"[" * 600 + b"]" * 600 + b',"retry":{"attempts":2}}',
            b'{"type":"mail","payload":' + b"[" * 5000 + b"]" * 5000 + b"}",
            b'{"type":"mail","payload":"\xff"}',
            b'{"type":"mail","payload":"\\ud800","retry":{"attempts":2}}',
            b'{"type":"mail","type":"mail","jobId":7,"payload":{"a":1,"a":2}}',
        ]
    ),
)
ids = some.one_of(
    some.uuids().map(lambda value: str(value).encode()),
    some.text(max_size=10).map(lambda value: value.encode("utf-8", "surrogatepass")),
    some.binary(max_size=10),
)
scores = some.sampled_from([float("inf"), float("-inf"), -1.0, 0.0, 1e300, 1.5]) | some.integers(-5000, 5000)
keys = some.sampled_from(["string", "string", "string", "hash", "list", "none"])
places = some.sampled_from(["front", "back", "back", "delayed", "cron", "active", "deadletter"])
entries = some.tuples(ids, texts, keys, places, scores)
beside = some.sampled_from(
    ["status", "lock", "progress", "result", "ratelimit:concurrent:", "ratelimit:minute:", "workers:", "x:stalls"]
)
strangers = some.lists(some.tuples(beside, texts, keys), max_size=4)


class Store:
    """Another client's hands on a namespace."""

    def __init__(self, redis: Redis, namespace: str) -> None:
        self.redis = redis
        self._base = namespace.encode() + b":"

    async def put(self, entry) -> None:
        job_id, data, key, place, score = entry
        await self.write(b"jobs:data:" + job_id, data, key)
        match place:
            case "front":
                await self.redis.lpush(self._base + b"jobs:waiting", job_id)
            case "back":
                await self.redis.rpush(self._base + b"jobs:waiting", job_id)
            case "delayed" | "cron":
                when = score if isinstance(score, float) else time.time() * 1000 + score
                await self.redis.zadd(self._base + b"jobs:" + place.encode(), {job_id: when})
            case "active":
                await self.redis.sadd(self._base + b"jobs:active", job_id)
            case "deadletter":
                await self.redis.lpush(self._base + b"jobs:deadletter", job_id)

    async def write(self, name: bytes, value: bytes, key: str) -> None:
        name = self._base + name
        await self.redis.delete(name)
        match key:
            case "string":
                # A lock is someone's until it ends; the spec lets none last for ever.
                await self.redis.set(name, value, px=500 if b":lock:" in name else None)
            case "hash":
                await self.redis.hset(name, b"type", value)
            case "list":
                await self.redis.rpush(name, value)

    async def left(self) -> list[bytes]:
        """Ids of the waiting list that a worker of the type could have run."""
        found = []
        for job_id in await self.redis.lrange(self._base + b"jobs:waiting", 0, -1):
            [data] = await self.redis.mget(self._base + b"jobs:data:" + job_id)
            if data is None or b'"mail"' not in data:
                continue
            job = json.loads(data)
            target, limits = job.get("target") or {}, job.get("rateLimit") or {}
            if job["type"] == "mail" and not target and not limits:
                found.append(job_id)
        return found

    async def reasons(self) -> dict[bytes, str]:
        """What is written about the dead that no handler has seen."""
        found = {}
        for job_id in await self.redis.lrange(self._base + b"jobs:deadletter", 0, -1):
            [raw] = await self.redis.mget(self._base + b"jobs:result:" + job_id)
            if raw is not None and b'"name":"PoisonedJob"' in raw:
                found[job_id] = json.loads(raw)["error"]["message"]
        return found


class Counted(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


async def survive(server_url: str, before, after, others) -> None:
    namespace = f"test-{uuid.uuid4().hex[:12]}"
    url = f"bridgemq+{server_url}?namespace={namespace}"
    done: set[int] = set()

    async def handler(job):
        if isinstance(job.data, dict) and "good" in job.data:
            done.add(job.data["good"])
            return
        if job.attempts_made < 2:
            raise ValueError("a stranger")

    async with Redis.from_url(server_url) as redis, Queue("mail", url) as queue:
        store = Store(redis, namespace)
        for kind, value, key in others:
            name = kind.encode() + (b"mail" if kind.startswith("rate") else b"w1")
            await store.write(name if ":" in kind else b"jobs:" + kind.encode() + b":good-0", value, key)
        for entry in before:
            await store.put(entry)
        await queue.add_many([NewJob({"good": n}, id=f"good-{n}") for n in range(GOOD // 2)])
        for entry in after:
            await store.put(entry)
        await queue.add_many([NewJob({"good": n}, id=f"good-{n}", delay=0.05) for n in range(GOOD // 2, GOOD)])
        options = {"lease": 2.0, "recover_every": 0.2, "max_backoff": 0.05, "concurrency": 10, "timeout": 5}
        async with Worker("mail", handler, url, **options) as worker:
            await eventually(lambda: len(done) == GOOD, within=30)

            async def is_quiet() -> bool:
                return not await store.left() and worker.busy == 0

            await eventually(is_quiet, within=30)
            calls, began = worker.stats.calls, time.monotonic()
            await asyncio.sleep(0.5)
            assert worker.running
            assert worker.connected
            assert worker.stats.calls - calls < 40 * (time.monotonic() - began), "an idle worker spins"
            await queue.counts()
            await queue.schedules()
            await queue.admin.workers()
            for state in ("waiting", "delayed", "active", "completed", "failed"):
                await queue.jobs(state)
        for job_id, reason in (await store.reasons()).items():
            assert any(word in reason for word in ("data", "id", "type", "target", "rateLimit")), (job_id, reason)
        await queue.admin.obliterate(force=True)


scenes = some.tuples(some.lists(entries, min_size=3, max_size=15), some.lists(entries, max_size=15), strangers)


# Without shrinking: an example takes seconds.
@settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),
)
@given(some.lists(scenes, min_size=SCENES, max_size=SCENES))
@example(
    [
        (
            [(b"\xff", b'{"type":"mail"}', "string", "back", 0)],
            [(b"", b'{"type":"mail"}', "string", "cron", 0.0)],
            [],
        ),
        (
            [(b"deep", b'{"type":"mail","payload":' + b"[" * 600 + b"]" * 600 + b"}", "string", "back", 0)],
            [(b"never", b"{}", "string", "delayed", float("inf"))],
            [("lock", b"x", "hash"), ("ratelimit:concurrent:", b"-5", "string")],
        ),
    ]
)
@pytest.mark.slow
def test_good_jobs_among_anything_are_done_and_the_worker_lives(jobwire_valkey, side_by_side):
    async def survive_all() -> None:
        await asyncio.gather(*(survive(jobwire_valkey.url, *scene) for scene in side_by_side))

    log = Counted()
    logging.getLogger("jobwire").addHandler(log)
    try:
        asyncio.run(survive_all())
    finally:
        logging.getLogger("jobwire").removeHandler(log)
    assert len(log.lines) < sum(20 + 8 * (len(before) + len(after)) for before, after, _ in side_by_side), log.lines
    assert not [line for line in log.lines if "failed (permanent" in line or "could not" in line], log.lines
