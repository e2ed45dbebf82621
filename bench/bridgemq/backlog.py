"""What a claim costs inside the server, against the number of jobs for others that wait as well."""

from __future__ import annotations

from statistics import quantiles
from typing import Any

from redis.asyncio import Redis

from jobwire import NewJob, Queue, Target
from jobwire.boundary import Completed, ConsumerSettings

KIND = "mail"
SIZES = (100, 1_000, 10_000, 100_000)
PLACES = {"behind": "matching jobs behind all others", "midst": "matching jobs in their midst"}
CLAIMS = {1: 200, 50: 40}
"""Jobs per claim -> how many claims are measured."""
OTHERS = Target(stack=("cobol",))
CHUNK = 5000


async def measure(server: str, size: int, place: str) -> dict[int, float]:
    """Microseconds inside the server, by the number of jobs claimed at once: the lower quartile of many claims, since
    the server's clock goes on while other programs have its processor."""
    costs: dict[int, float] = {}
    async with Redis.from_url(server) as redis, Queue(KIND, f"bridgemq+{server}") as queue:
        for together, times in CLAIMS.items():
            await redis.flushall()
            before = size if place == "behind" else size // 2
            await _fill(queue, before, OTHERS)
            await _fill(queue, together * (times + 1), None)
            await _fill(queue, size - before, OTHERS)
            costs[together] = await _claim(redis, queue, together, times)
    return costs


async def _fill(queue: Queue, jobs: int, target: Target | None) -> None:
    for first in range(0, jobs, CHUNK):
        await queue.add_many([NewJob(n, target=target) for n in range(first, min(first + CHUNK, jobs))])


async def _claim(redis: Redis, queue: Queue, together: int, times: int) -> float:
    consumer = queue.connection.backend.consumer(ConsumerSettings(KIND, "w1"))
    claims: Any = (await consumer.settle([], together)).claims
    await consumer.settle([Completed(claim, b"null") for claim in claims], 0)
    spent: list[float] = []
    for _ in range(times):
        await redis.config_resetstat()
        claims = (await consumer.settle([], together)).claims
        assert len(claims) == together
        spent.append((await redis.info("commandstats"))["cmdstat_evalsha"]["usec"])
        await consumer.settle([Completed(claim, b"null") for claim in claims], 0)
    await consumer.close()
    return quantiles(spent, n=4)[0]
