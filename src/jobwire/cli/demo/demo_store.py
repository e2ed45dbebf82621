"""One protocol on one server, with its producers and workers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from jobwire.boundary import Feature
from jobwire.cli.demo.meter import Meter
from jobwire.cli.demo.workload import WORKLOADS, Workload, fitted, new_job
from jobwire.connection import Connection
from jobwire.options import NewJob
from jobwire.queue import Queue
from jobwire.worker import Worker

_BATCH_EVERY = 0.05
_LARGEST_BATCH = 500


@dataclass(slots=True)
class MeasuredQueue:
    """A queue with its workers, the kinds of job in it with their weights, and its meter."""

    queue: Queue
    workers: list[Worker]
    kinds: dict[str, float]
    meter: Meter = field(default_factory=Meter)


class DemoStore:
    """Queues, producers and workers of one protocol. `async with` starts the workers, on queues that it empties first
    unless `emptied` is False. At its end the running jobs are finished."""

    def __init__(
        self,
        protocol: str,
        server: str,
        url: str,
        workloads: Sequence[Workload] = WORKLOADS,
        *,
        emptied: bool = True,
    ) -> None:
        self.protocol = protocol
        self.server = server
        self.url = url
        self.queues: list[MeasuredQueue] = []
        self._workloads = workloads
        self._emptied = emptied
        self._stack = AsyncExitStack()
        self._running = AsyncExitStack()
        self._random = random.Random()

    async def __aenter__(self) -> DemoStore:
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(Connection(self.url))
            for workload in self._workloads:
                for name, kinds in _queues(workload, connection):
                    queue = await stack.enter_async_context(Queue(name, connection))
                    if self._emptied:
                        await queue.admin.obliterate(force=True)
                    self.queues.append(MeasuredQueue(queue, [], kinds))
                    self._add_workers(self.queues[-1], workload, connection)
            for measured in self.queues:
                for worker in measured.workers:
                    await self._running.enter_async_context(worker)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await self.stop_workers()
        finally:
            await self._stack.aclose()

    def _add_workers(self, measured: MeasuredQueue, workload: Workload, connection: Connection) -> None:
        measured.workers += [
            Worker(
                measured.queue.name,
                workload.handler,
                connection,
                concurrency=workload.concurrency,
                worker_id=f"{measured.queue.name}-{number + 1}",
                observers=[measured.meter],
            )
            for number in range(workload.workers)
        ]

    async def produce(self, rate: float) -> None:
        """Adds jobs at this rate until cancelled. Waits for a batch that was sent, so that the count stays right."""
        began, made = time.monotonic(), 0
        while True:
            await asyncio.sleep(_BATCH_EVERY)
            wanted = min(int((time.monotonic() - began) * rate) - made, _LARGEST_BATCH)
            batch = self._batch(made, wanted)
            made += wanted
            sending = asyncio.create_task(self._send(batch))
            try:
                await asyncio.shield(sending)
            except asyncio.CancelledError:
                await sending
                raise

    def _batch(self, first: int, size: int) -> list[tuple[MeasuredQueue, NewJob]]:
        choices = [(measured, kind, weight) for measured in self.queues for kind, weight in measured.kinds.items()]
        drawn = self._random.choices(choices, weights=[weight for _, _, weight in choices], k=size)
        return [
            (measured, new_job(kind, first + index, self._random)) for index, (measured, kind, _) in enumerate(drawn)
        ]

    async def _send(self, batch: list[tuple[MeasuredQueue, NewJob]]) -> None:
        for measured in self.queues:
            jobs = [fitted(job, measured.queue.capabilities) for where, job in batch if where is measured]
            if jobs:
                measured.meter.added += len(await measured.queue.add_many(jobs))

    async def look(self) -> None:
        """Reads the counts of every queue from the server."""
        for measured in self.queues:
            measured.meter.look(await measured.queue.counts())

    @property
    def idle(self) -> bool:
        """True if no job was left at the last look."""
        return not any(measured.meter.left for measured in self.queues)

    async def stop_workers(self) -> None:
        """Stops the workers, after the jobs that they run."""
        await self._running.aclose()


def _queues(workload: Workload, connection: Connection) -> list[tuple[str, dict[str, float]]]:
    """Returns the queue of a handler, or one queue per kind of job if the protocol's jobs have no names."""
    if connection.backend.capabilities.has(Feature.JOB_NAMES):
        return [(workload.queue, workload.kinds)]
    return [(kind, {kind: weight}) for kind, weight in workload.kinds.items()]
