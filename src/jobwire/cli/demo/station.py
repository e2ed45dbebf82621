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
from jobwire.cli.demo.workload import DESKS, Desk, fitted, new_job
from jobwire.connection import Connection
from jobwire.options import NewJob
from jobwire.queue import Queue
from jobwire.worker import Worker

_BREATH = 0.05
_LARGEST_BATCH = 500


@dataclass(slots=True)
class Line:
    """A queue of the station with its workers and its meter."""

    queue: Queue
    workers: list[Worker]
    kinds: dict[str, float]
    meter: Meter = field(default_factory=Meter)


class Station:
    """Queues, producers and workers of one protocol. `async with` empties the queues and starts the workers. At its end
    the running jobs are finished."""

    def __init__(self, protocol: str, store: str, url: str, desks: Sequence[Desk] = DESKS) -> None:
        self.protocol = protocol
        self.store = store
        self.url = url
        self.lines: list[Line] = []
        self._desks = desks
        self._stack = AsyncExitStack()
        self._staff = AsyncExitStack()
        self._dice = random.Random()

    async def __aenter__(self) -> Station:
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(Connection(self.url))
            for desk in self._desks:
                for name, kinds in _queues(desk, connection):
                    queue = await stack.enter_async_context(Queue(name, connection))
                    await queue.admin.obliterate(force=True)
                    self.lines.append(Line(queue, [], kinds))
                    self._hire(self.lines[-1], desk, connection)
            for line in self.lines:
                for worker in line.workers:
                    await self._staff.enter_async_context(worker)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *error: object) -> None:
        try:
            await self.send_home()
        finally:
            await self._stack.aclose()

    def _hire(self, line: Line, desk: Desk, connection: Connection) -> None:
        line.workers += [
            Worker(
                line.queue.name,
                desk.handler,
                connection,
                concurrency=desk.concurrency,
                worker_id=f"{line.queue.name}-{number + 1}",
                observers=[line.meter],
            )
            for number in range(desk.workers)
        ]

    async def produce(self, rate: float) -> None:
        """Adds jobs at this rate until cancelled. Waits for a batch that was sent, so that the count stays right."""
        began, made = time.monotonic(), 0
        while True:
            await asyncio.sleep(_BREATH)
            wanted = min(int((time.monotonic() - began) * rate) - made, _LARGEST_BATCH)
            batch = self._batch(made, wanted)
            made += wanted
            sending = asyncio.create_task(self._send(batch))
            try:
                await asyncio.shield(sending)
            except asyncio.CancelledError:
                await sending
                raise

    def _batch(self, first: int, size: int) -> list[tuple[Line, NewJob]]:
        choices = [(line, kind, weight) for line in self.lines for kind, weight in line.kinds.items()]
        drawn = self._dice.choices(choices, weights=[weight for _, _, weight in choices], k=size)
        return [(line, new_job(kind, first + index, self._dice)) for index, (line, kind, _) in enumerate(drawn)]

    async def _send(self, batch: list[tuple[Line, NewJob]]) -> None:
        for line in self.lines:
            jobs = [fitted(job, line.queue.capabilities) for where, job in batch if where is line]
            if jobs:
                line.meter.added += len(await line.queue.add_many(jobs))

    async def look(self) -> None:
        """Reads the counts of every queue from the server."""
        for line in self.lines:
            line.meter.look(await line.queue.counts())

    @property
    def idle(self) -> bool:
        """True if no job was left at the last look."""
        return not any(line.meter.left for line in self.lines)

    async def send_home(self) -> None:
        """Stops the workers, after the jobs that they run."""
        await self._staff.aclose()


def _queues(desk: Desk, connection: Connection) -> list[tuple[str, dict[str, float]]]:
    """Returns the queue of a handler, or one queue per kind of job if the protocol's jobs have no names."""
    if connection.backend.capabilities.has(Feature.JOB_NAMES):
        return [(desk.queue, desk.kinds)]
    return [(kind, {kind: weight}) for kind, weight in desk.kinds.items()]
