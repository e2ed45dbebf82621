"""A queue seen from two sides: jobs are put and run through the backend, and read through the pipeline's boundary."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pyarrow as pa

from jobwire import codec
from jobwire.boundary import Added, Backend, Claim, Completed, Consumer, ConsumerSettings, Failed, Outcome, PreparedJob
from jobwire.connection import load_backend
from jobwire.model import Job, State
from jobwire.options import NewJob
from jobwire.pipeline.lake.schemas import EVENTS, JOBS
from jobwire.pipeline.stores.boundary import Offset, QueueStore, Stamp, Wanted, open_store
from jobwire.urls import parse

QUEUE = "letters"
STORE = "the store"
Row = dict[str, Any]


class Rig:
    """One queue of one store."""

    def __init__(self, url: str, backend: Backend, queue: str, native: object | None = None) -> None:
        self.url = url
        self.backend = backend
        self.queue = queue
        self.store: QueueStore = open_store(parse(url), queue, STORE)
        self.worker: Consumer = backend.consumer(ConsumerSettings(queue, "worker", name="ada", native=native))

    async def add(self, *jobs: NewJob) -> Sequence[Added]:
        added: list[Added] = []
        for start in range(0, len(jobs), 5_000):
            some = jobs[start : start + 5_000]
            for job in some:
                self.backend.check(self.queue, job)
            added += await self.backend.add(
                self.queue, [PreparedJob(job, job.name or self.queue, codec.dumps(job.data)) for job in some]
            )
        return added

    async def claim(self, count: int) -> list[Claim]:
        return list((await self.worker.settle([], count)).claims)

    async def settle(self, outcomes: Sequence[Outcome]) -> None:
        for start in range(0, len(outcomes), 200):
            await self.worker.settle(outcomes[start : start + 200], 0)

    async def complete(self, count: int, result: bytes = b'{"sent":true}') -> list[str]:
        """Run that many jobs; their ids."""
        done: list[str] = []
        while len(done) < count:
            claims = await self.claim(min(200, count - len(done)))
            assert claims
            await self.settle([Completed(one, result) for one in claims])
            done += [one.job.id for one in claims]
        return done

    async def fail(self, count: int, error: str = "no such address") -> list[str]:
        """Fail that many jobs for good; their ids."""
        claims = await self.claim(count)
        assert len(claims) == count
        await self.settle([Failed(one, error, "Traceback: here", final=True) for one in claims])
        return [one.job.id for one in claims]

    async def all_jobs(self) -> dict[str, Job]:
        """What the backend says that the queue holds."""
        found: dict[str, Job] = {}
        for state in State:
            cursor: str | None = None
            while True:
                page = await self.backend.jobs(self.queue, state, 2_000, cursor)
                found |= {job.id: job for job in page}
                cursor = page.cursor
                if cursor is None:
                    break
        return found

    def rows(self, wanted: Wanted | None = None, parts: int = 4) -> list[Row]:
        wanted = wanted or Wanted()
        return [row for part in self.store.plan_jobs(wanted, parts) for row in self.part(part, wanted)]

    def part(self, part: Any, wanted: Wanted | None = None) -> list[Row]:
        return as_rows(self.store.read_jobs(part, wanted or Wanted()), JOBS.arrow)

    def row(self, job_id: str) -> Row:
        (found,) = [row for row in self.rows() if row["id"] == job_id]
        return found

    def finished(self) -> list[Row]:
        return self.rows(Wanted(states=frozenset([State.COMPLETED, State.FAILED])))

    def events(self, start: Offset | None = None, end: Offset | None = None) -> list[Row]:
        start = self.store.first_offset() if start is None else start
        end = self.store.latest_offset(start, None) if end is None else end
        parts = self.store.plan_events(start, end)
        return [row for part in parts for row in as_rows(self.store.read_events(part), EVENTS.arrow)]


def as_rows(batches: Any, schema: pa.Schema) -> list[Row]:
    rows: list[Row] = []
    for batch in batches:
        assert batch.schema == schema
        rows += batch.to_pylist()
    return rows


def stamps(rows: Sequence[Row]) -> list[Stamp]:
    return [Stamp(row["id"], row["state"], row["fingerprint"]) for row in rows]


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=JOBS.arrow)


def finished_row(**columns: Any) -> Row:
    """A finished job of no particular protocol."""
    row: Row = dict.fromkeys(JOBS.names)
    row |= {"store": "elsewhere", "queue": "q", "id": "a-1", "name": "welcome", "state": "completed"}
    row |= {"attempts": 3, "attempts_made": 2, "payload": '{"to":"zoë"}', "raw": "{}", "result": '{"sent":true}'}
    moments = ("created_at", "started_at", "finished_at")
    row |= {name: datetime.fromisoformat(f"2026-03-01T12:00:0{n}.250+00:00") for n, name in enumerate(moments)}
    return row | columns


@asynccontextmanager
async def rig_at(url: str, queue: str = QUEUE, native: object | None = None) -> AsyncIterator[Rig]:
    backend = load_backend(parse(url))
    await backend.open()
    rig = Rig(url, backend, queue, native)
    try:
        yield rig
    finally:
        rig.store.close()
        await rig.worker.close()
        await backend.close()
