"""The consumer: one worker's claims on a queue in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from dataclasses import replace

from jobwire.backends.memory.store.queue_state import ConnectedWorker
from jobwire.backends.memory.store.store import Store
from jobwire.backends.memory.work import settle
from jobwire.boundary import Claim, ConsumerSettings, Duty, DutyReport, Failed, Outcome, Settled, Throttled
from jobwire.retry import Custom, NextAttempt, next_attempt


class MemoryConsumer:
    def __init__(self, store: Store, settings: ConsumerSettings) -> None:
        self._store = store
        self._settings = settings
        self._listed = False

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        decided = [self._decide(outcome) if isinstance(outcome, Failed) else None for outcome in outcomes]
        with self._store.lock:
            self._list_worker()
            now = self._store.now()
            queue = self._store.queue(self._settings.queue)
            verdicts = [
                settle.settle(queue, outcome, decided=decision, settings=self._settings, now=now)
                for outcome, decision in zip(outcomes, decided, strict=True)
            ]
            limit = max((one.delay for one in outcomes if isinstance(one, Throttled)), default=0.0)
            if limit > 0:
                return Settled(verdicts, blocked_for=limit)
            return replace(settle.claim(queue, claim, self._settings, now), verdicts=verdicts)

    def claim_job(self, job_id: str) -> Claim | None:
        """Claims one job, also if it is not due. Returns None if it does not wait."""
        with self._store.lock:
            queue = self._store.queue(self._settings.queue)
            return settle.claim_job(queue, job_id, self._settings, self._store.now())

    def _decide(self, outcome: Failed) -> NextAttempt:
        """Returns whether and when a failed job runs again. Called without the lock: a strategy is the user's code,
        which may call the store."""
        job = outcome.claim.job
        with self._store.lock:
            record = self._store.queue(self._settings.queue).jobs.get(job.id)
            backoff = record.backoff if record is not None else None
        if backoff is not None and backoff.kind == "custom":
            backoff = Custom(backoff.name, self._settings.strategy_for(backoff.name))
        return next_attempt(
            outcome,
            failures=job.attempts_made + 1,
            attempts=job.attempts or 1,
            backoff=backoff,
            longest=self._settings.max_backoff,
        )

    async def wait(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while (left := deadline - loop.time()) > 0:
            with self._store.lock:
                self._list_worker()
                queue = self._store.queue(self._settings.queue)
                if queue.ready and not queue.closed:
                    return
                due = queue.next_due()
                due_in = (due - self._store.now()) / 1000 if due is not None and not queue.closed else None
                if due_in is not None and due_in <= 0:
                    return
                sleeper = queue.work.register()
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left if due_in is None else min(left, due_in)):
                        await sleeper
            finally:
                with self._store.lock:
                    queue.work.leave(sleeper)

    async def pass_on(self) -> None:
        """Does nothing: a wakeup reaches every waiting worker, and the others check the queue before they wait."""

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        with self._store.lock:
            queue = self._store.queue(self._settings.queue)
            return settle.extend(queue, claims, self._settings, self._store.now())

    def duties(self) -> Sequence[Duty]:
        return [Duty("recover", self._settings.recover_every, self._recover)]

    async def _recover(self) -> DutyReport:
        with self._store.lock:
            queue = self._store.queue(self._settings.queue)
            return DutyReport(recovered=settle.recover(queue, self._settings, self._store.now()))

    async def reset(self) -> None:
        """Does nothing: there is no connection to drop."""

    def _list_worker(self) -> None:
        if self._listed:
            return
        self._listed = True
        worker_id = self._settings.worker_id
        workers = self._store.queue(self._settings.queue).workers
        workers.setdefault(worker_id, ConnectedWorker(self._settings.name or worker_id)).consumers += 1

    async def close(self) -> None:
        """Removes the worker from the list of workers when its last consumer is closed."""
        with self._store.lock:
            if not self._listed:
                return
            self._listed = False
            workers = self._store.queue(self._settings.queue).workers
            connected = workers[self._settings.worker_id]
            connected.consumers -= 1
            if not connected.consumers:
                del workers[self._settings.worker_id]
