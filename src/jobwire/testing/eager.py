"""Runs jobs at once when they are added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Never

from jobwire.boundary import Verdict
from jobwire.model import AddStatus, Job
from jobwire.options import NewJob
from jobwire.queue import Queue
from jobwire.tasks.app import App, new_life, tasks_of
from jobwire.testing.runs import run_claim
from jobwire.testing.store import StoreInMemory

_PATIENCE = 30.0
"""Seconds that hooks have to end."""


class EagerStore(StoreInMemory):
    """A store whose queues run each job when it is added."""

    runs: EagerRuns

    def make_queue(self, name: str) -> Queue:
        return EagerQueue(name, self)


class EagerRuns:
    """Runs jobs of an app, in one life of it: the lifespan and the values of the process last as long as the block."""

    def __init__(self, app: App, store: EagerStore) -> None:
        self._app = app
        self._store = store
        self._life = new_life(app)
        self.life = self._life.run({}, store.queue)

    async def run(self, job: Job) -> Job:
        """Runs a job until it has finished, with the attempts that it has. Returns it as it is then, and raises the
        error of one that has failed. A job that asks to be run later, or that the app has no task for, is left as it
        is."""
        tasks = tasks_of(self._app, job.queue)
        if tasks is None:
            return job
        consumer = self._store.consumer(job.queue)
        with closing(self._life.runner(tasks)) as runner:
            while (claim := consumer.claim_job(job.id)) is not None:
                ended = await run_claim(runner, self._store.connection.backend, claim)
                [verdict] = (await consumer.settle([ended.outcome], 0)).verdicts
                self._life.hooks.settled(ended.outcome, verdict)
                await self._life.hooks.finish(_PATIENCE)
                if verdict is Verdict.FAILED:
                    raise ended.reason()
                if verdict is not Verdict.RETRIED:
                    break
        return self._as_it_is(job)

    def _as_it_is(self, job: Job) -> Job:
        record = next(record for record in reversed(self._store.added(job.queue)) if record.id == job.id)
        return replace(record.snapshot(job.queue), add_status=job.add_status, origin=job.origin)


class EagerQueue(Queue):
    """A queue whose jobs are run when they are added."""

    def __init__(self, name: str, store: EagerStore) -> None:
        super().__init__(name, store.connection, size_limit=store.size_limit)
        self._eager = store

    async def add_job(self, job: NewJob, *, transaction: Any = None) -> Job:
        added = await super().add_job(job, transaction=transaction)
        return await self._run(added)

    async def add_many(self, jobs: Iterable[NewJob], *, transaction: Any = None, **unknown: Never) -> Sequence[Job]:
        """Adds jobs, then runs one after the other. The first error ends that."""
        added = await super().add_many(jobs, transaction=transaction, **unknown)
        return [await self._run(job) for job in added]

    async def _run(self, job: Job) -> Job:
        return await self._eager.runs.run(job) if job.add_status is AddStatus.ADDED else job
