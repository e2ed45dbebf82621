"""Short ways to add and to run jobs through the boundary, as the queue and the engine above it do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobwire import codec
from jobwire.boundary import Added, Backend, Claim, Consumer, ConsumerSettings, PreparedJob
from jobwire.options import NewJob


def prepared(job: NewJob, queue: str = "q") -> PreparedJob:
    return PreparedJob(job, job.name or queue, codec.dumps(job.data))


async def add(backend: Backend, *jobs: NewJob, queue: str = "q") -> Sequence[Added]:
    for job in jobs:
        backend.check(queue, job)
    return await backend.add(queue, [prepared(job, queue) for job in jobs])


def consumer(backend: Backend, queue: str = "q", **settings: Any) -> Consumer:
    return backend.consumer(ConsumerSettings(queue, "worker", **settings))


async def claim(worker: Consumer, count: int = 1) -> list[Claim]:
    return list((await worker.settle([], count)).claims)
