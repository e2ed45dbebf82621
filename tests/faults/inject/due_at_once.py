"""Adds a great many delayed jobs that are due at the same moment, beside the load."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from faults.inject.fault import Fault
from faults.ledger import Book, Kind
from faults.scene import Scene
from jobwire import NewJob, Queue

_BATCH = 1000
_FIRST = 10**9
_STEP = 10
"""All numbers are multiples of ten, which are plain jobs."""


class DueAtOnce(Fault):
    times = 1
    times_short = 1
    JOBS, JOBS_SHORT = 100_000, 300

    async def inject(self, scene: Scene) -> None:
        jobs = self.JOBS_SHORT if scene.short else self.JOBS
        book = Book(scene.ledger.folder, "herd")
        due = datetime.now(UTC) + timedelta(seconds=2.0 + jobs / 2500)
        async with Queue("work", scene.store.url) as queue:
            for start in range(0, jobs, _BATCH):
                numbers = [_FIRST + _STEP * one for one in range(start, min(jobs, start + _BATCH))]
                for n in numbers:
                    book.write(Kind.INTENDED, n=n)
                added = await queue.add_many([NewJob({"n": n, "kind": "plain"}, run_at=due) for n in numbers])
                for n, job in zip(numbers, added, strict=True):
                    book.write(Kind.ACKNOWLEDGED, n=n, job=job.id)
