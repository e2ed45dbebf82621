"""What the library adds to its own scripts: the same work through Queue and Worker, and by hand in two ways.

Pipelined: one script call per job, a hundred of them in a pipeline, two pipelines in flight; so a team would write it
around the scripts of a queue. Batched: jobwire's scripts with whole batches, the arguments put together in one
expression; nothing can be quicker. Neither checks, retries, renews a lock, reads a job or runs a handler. All take
turns on one server in one process, so that what the machine does meanwhile hits all.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis

from jobwire import ActiveJob, NewJob, Queue, Worker, connect
from jobwire.backends.redisio.scripts import load
from jobwire.connection import Connection

Way = Callable[[], Awaitable[float]]
PACKAGE = "jobwire.backends.bullmq"
BASE = "bull:bench:"
ADD_BATCH = 500
LANES, SETTLE_BATCH = 2, 50
PIPELINE = 100


async def add_batched(redis: Redis, jobs: int) -> float:
    sha = await redis.script_load(load(PACKAGE, "add").text)
    began = time.perf_counter()
    for first in range(0, jobs, ADD_BATCH):
        now = int(time.time() * 1000)
        args: list[Any] = ["n", b'{"n":%d}' % first, "job", b'{"attempts":0}']
        for number in range(first + 1, first + ADD_BATCH):
            args += ("", b'{"n":%d}' % number)
        await redis.evalsha(sha, 1, BASE, ADD_BATCH, 0, now, *args)
    return time.perf_counter() - began


async def work_batched(redis: Redis, jobs: int) -> float:
    sha = await redis.script_load(load(PACKAGE, "settle").text)
    left = jobs

    async def lane(number: int) -> None:
        nonlocal left
        held: list[bytes] = []
        token, turn = "", 0
        while left > 0:
            done = [part for job_id in held for part in (job_id, b"null")]
            shared = (len(held), token, "", "", 1, "") if held else ()
            turn += 1
            following = f"hand-{number}:{turn}"
            head = (int(time.time() * 1000), SETTLE_BATCH, following, 30000, "", "", "", "", len(held), 0)
            reply = await redis.evalsha(sha, 1, BASE, *head, *shared, *done)
            left -= len(held)
            held, token = reply[1][::2], following

    began = time.perf_counter()
    await asyncio.gather(*(lane(number) for number in range(LANES)))
    return time.perf_counter() - began


async def add_pipelined(redis: Redis, jobs: int) -> float:
    sha = await redis.script_load(load(PACKAGE, "add").text)

    async def lane(numbers: range) -> None:
        for first in numbers[::PIPELINE]:
            async with redis.pipeline(transaction=False) as pipeline:
                now = int(time.time() * 1000)
                for number in range(first, first + PIPELINE):
                    data = b'{"n":%d}' % number
                    pipeline.evalsha(sha, 1, BASE, 1, 0, now, "n", data, "job", b'{"attempts":0}')
                await pipeline.execute()

    began = time.perf_counter()
    await asyncio.gather(lane(range(jobs // 2)), lane(range(jobs // 2, jobs)))
    return time.perf_counter() - began


async def work_pipelined(redis: Redis, jobs: int) -> float:
    sha = await redis.script_load(load(PACKAGE, "settle").text)
    left = jobs

    async def lane(number: int) -> None:
        nonlocal left
        held: list[bytes] = []
        token = f"hand-{number}:0"
        while left > 0:
            async with redis.pipeline(transaction=False) as pipeline:
                head = (int(time.time() * 1000), 1, token, 30000, "", "", "", "")
                for job_id in held:
                    pipeline.evalsha(sha, 1, BASE, *head, 1, 0, 1, token, "", "", 1, "", job_id, b"null")
                for _ in range(PIPELINE - len(held)):
                    pipeline.evalsha(sha, 1, BASE, *head, 0, 0)
                replies = await pipeline.execute()
            left -= len(held)
            held = [reply[1][0] for reply in replies if reply[1]]

    began = time.perf_counter()
    await asyncio.gather(*(lane(number) for number in range(LANES)))
    return time.perf_counter() - began


async def add_by_library(queue: Queue, jobs: int) -> float:
    began = time.perf_counter()
    for first in range(0, jobs, 1000):
        await queue.add_many([NewJob({"n": n}, "job") for n in range(first, first + 1000)])
    return time.perf_counter() - began


class Countdown:
    """An observer of a worker that tells when so many jobs have been settled."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs
        self.done = asyncio.Event()

    def started(self, *_: Any) -> None: ...

    def settled(self, *_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.done.set()


async def work_by_library(connection: Connection, jobs: int) -> float:
    async def handle(job: ActiveJob) -> None:
        return None

    countdown = Countdown(jobs)
    worker = Worker("bench", handle, connection, concurrency=LANES * SETTLE_BATCH, observers=[countdown])
    async with asyncio.TaskGroup() as group:
        began = time.perf_counter()
        group.create_task(worker.run(signals=False))
        await countdown.done.wait()
        took = time.perf_counter() - began
        await worker.stop()
    return took


async def measure(url: str, jobs: int, rounds: int) -> dict[str, dict[str, float]]:
    """Jobs per second each way, medians, and how much longer the library takes than either, in %."""
    async with (
        Redis.from_url(url, protocol=2) as redis,
        connect(f"bullmq+{url}") as connection,
        Queue("bench", connection) as queue,
    ):
        contests: dict[str, dict[str, Way]] = {
            "add": {
                "pipelined": lambda: add_pipelined(redis, jobs),
                "batched": lambda: add_batched(redis, jobs),
                "library": lambda: add_by_library(queue, jobs),
            },
            "work": {
                "pipelined": lambda: work_pipelined(redis, jobs),
                "batched": lambda: work_batched(redis, jobs),
                "library": lambda: work_by_library(connection, jobs),
            },
        }
        return {name: await _contest(redis, name, ways, jobs, rounds) for name, ways in contests.items()}


async def _contest(redis: Redis, name: str, ways: dict[str, Way], jobs: int, rounds: int) -> dict[str, float]:
    walls: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds):
        for way in list(ways) if turn % 2 == 0 else list(ways)[::-1]:
            await redis.flushall()
            if name == "work":
                await add_batched(redis, jobs)
            walls[way].append(await ways[way]())
            done = await (redis.llen(f"{BASE}wait") if name == "add" else redis.zcard(f"{BASE}completed"))
            if done < jobs:
                raise RuntimeError(f"{name}, {way}: {done} jobs of {jobs}")
    medians = {way: statistics.median(seconds) for way, seconds in walls.items()}
    rates = {f"{way}_per_s": jobs / seconds for way, seconds in medians.items()}
    longer = {
        f"longer_than_{way}_percent": (medians["library"] / medians[way] - 1) * 100 for way in ("pipelined", "batched")
    }
    return {**rates, **longer}
