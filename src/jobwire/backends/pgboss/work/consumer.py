"""Claims jobs of one pg-boss queue for one worker, settles their outcomes and extends their leases."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from jobwire.backends.extend_batches import extend_in_batches
from jobwire.backends.pgboss.connection.errors import UNDEFINED_TABLE, UNIQUE_VIOLATION, Refused
from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import plain_list, text
from jobwire.backends.pgboss.queues import QueueRow, Queues
from jobwire.backends.pgboss.upkeep.duties import Duties
from jobwire.backends.pgboss.upkeep.recover import STALLED, lease_of
from jobwire.backends.pgboss.work import rate_limit
from jobwire.backends.pgboss.work.claims import PgClaim, read_claims
from jobwire.backends.pgboss.work.dependents import Dependents
from jobwire.backends.pgboss.work.fence import fence_of
from jobwire.backends.pgboss.work.fetch import FetchPlan
from jobwire.backends.pgboss.work.remember import Memory
from jobwire.backends.pgboss.work.settle import Batch, Settling, checked, ended_parents, own
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.boundary import (
    Claim,
    Completed,
    ConsumerSettings,
    Duty,
    DutyReport,
    Failed,
    Outcome,
    Settled,
    Verdict,
)
from jobwire.counted import counted
from jobwire.errors import JobwireError

_log = logging.getLogger("jobwire.pgboss")

_SHORT_BEAT = 3.0
"""Seconds between two extensions for jobs whose own heartbeat is shorter than the lease. pg-boss allows heartbeats of
ten seconds and more."""
_CONTENDED = 0.05
"""Seconds until the next claim after another worker has claimed a job of the same key first."""


class PgConsumer:
    """Implements Consumer."""

    def __init__(self, store: Store, queues: Queues, duties: Duties, settings: ConsumerSettings) -> None:
        self.options = WorkerOptions.of(settings.native)
        self._store = store
        self._queues = queues
        self._duties = duties
        self._dependents = Dependents(store, queues)
        self.settings = settings
        self._name = settings.queue
        self._lease_seconds = lease_of(settings)
        self._lease = str(self._lease_seconds).encode()
        self._memory = Memory.of(self.options.rememberAttempts, settings)
        self.settling = Settling(store, self._name, self._memory)
        self._ready = asyncio.Lock()
        self._queue: QueueRow | None = None
        self._light = True
        self._planned: tuple[QueueRow, bool] | None = None
        self._fetch: FetchPlan
        self._short: set[PgClaim] = set()

    # --- claiming and settling --------------------------------------------------------------------------------------

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        queue = await self._prepared()
        outcomes = [checked(outcome) for outcome in outcomes]
        if self._short:
            self._short.difference_update(own(outcome.claim) for outcome in outcomes)
        transactional = False
        for outcome in outcomes:
            held = own(outcome.claim)
            held.ended = True
            transactional = transactional or held.transactional
        if transactional:
            outcomes, done = await self._commit(queue, outcomes)
            settled = await self._settle(queue, outcomes, claim)
            verdicts = iter(settled.verdicts)
            merged = [next(verdicts) if verdict is None else verdict for verdict in done]
            return Settled(merged, settled.claims, settled.next_in, settled.blocked_for)
        return await self._settle(queue, outcomes, claim)

    async def _settle(self, queue: QueueRow, outcomes: Sequence[Outcome], claim: int) -> Settled:
        try:
            return await self._exchange(queue, outcomes, claim)
        except Refused as error:
            if error.sqlstate == UNDEFINED_TABLE:
                return await self._moved(outcomes)
            if error.sqlstate != UNIQUE_VIOLATION and not (outcomes and claim):
                raise
        # Nothing of the call has happened. Another worker claimed a job of the same key between our read and our write,
        # or a row could not be claimed: outcomes must not wait for either, so they are settled without a claim.
        try:
            settled = await self._exchange(queue, outcomes, 0)
        except Refused as error:
            if error.sqlstate != UNIQUE_VIOLATION:
                raise
            settled = Settled([await self._settle_alone(queue, outcome) for outcome in outcomes])
        return Settled(settled.verdicts, next_in=_CONTENDED if claim else None)

    async def _exchange(self, queue: QueueRow, outcomes: Sequence[Outcome], claim: int) -> Settled:
        if claim > 0 and rate_limit.is_wanted(self.settings, self.options):
            return await rate_limit.exchange(self, self._store, queue, outcomes, wanted=claim, lease=self._lease)
        calls, kinds = self.settling.calls(queue, outcomes)
        look_ahead = claim > 0 and self._light
        if claim > 0:
            calls += self._plan(queue).calls(self._name, claim, self._lease)
        if look_ahead:
            calls.append(self._next_due(queue))
        if not calls:
            return Settled()
        answers = await self._store.run(calls)
        verdicts = await self.verdicts(outcomes, kinds, answers)
        if not claim:
            return Settled(verdicts)
        due = None
        if look_ahead:
            [(due,)] = answers.pop()
        return await self.looked(queue, verdicts, self.claims_of(queue, answers[-1]), claim, due)

    async def verdicts(
        self, outcomes: Sequence[Outcome], kinds: Sequence[Batch], answers: Sequence[Sequence[Row]]
    ) -> list[Verdict]:
        """Returns a verdict for each outcome, and sees to the jobs that wait for those that have ended."""
        completed, failed = ended_parents(kinds, answers)
        if completed or failed:
            await self._dependents.first_ended(self._name, completed, failed)
        return self.settling.verdicts(outcomes, kinds, answers)

    async def looked(
        self, queue: QueueRow, verdicts: Sequence[Verdict], claims: list[PgClaim], asked: int, due: float | None
    ) -> Settled:
        """Returns the result of a claim for the engine: as many jobs as it asked for, or fewer and when to claim
        again."""
        if any(claim.lapsed for claim in claims):
            await self._count_lapses(queue, claims)
        if len(claims) >= asked:
            self._light = False
            self._store.wakeup.wake_another(self._name)
            return Settled(verdicts, claims)
        if not self._light:
            [[(due,)]] = await self._store.run([self._next_due(queue)])
            self._light = True
        return Settled(verdicts, claims, next_in=None if due is None else max(due, 0.0))

    def _plan(self, queue: QueueRow) -> FetchPlan:
        known = (queue, self._store.has_side)
        if self._planned != known:
            self._planned, self._fetch = known, FetchPlan.of(queue, self.options, self._store)
        return self._fetch

    def _next_due(self, queue: QueueRow) -> Call:
        return self._store.statements.get("next_due", queue.table), {"queue": text(self._name)}

    async def _settle_alone(self, queue: QueueRow, outcome: Outcome) -> Verdict:
        """Settles one outcome by itself. If another job of its key already waits, the job can't go back to the queue:
        it fails, as in pg-boss."""
        attempts: list[Outcome] = [outcome]
        claim = outcome.claim
        if isinstance(outcome, Failed):
            attempts.append(Failed(claim, outcome.error, outcome.stack, final=True))
        else:
            attempts.append(Failed(claim, "another job of this key waits in its place", final=True))
        for attempt in attempts:
            calls, kinds = self.settling.calls(queue, [attempt])
            try:
                answers = await self._store.run(calls)
            except Refused as error:
                if error.sqlstate != UNIQUE_VIOLATION:
                    raise
                continue
            return (await self.verdicts([attempt], kinds, answers))[0]
        return Verdict.LOST

    # --- transactions of handlers -----------------------------------------------------------------------------------

    async def _commit(self, queue: QueueRow, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Verdict | None]]:
        """Completes jobs whose handlers took a connection, and commits them together with what the handler wrote.

        Returns the outcomes that are left to settle, and a verdict for each given outcome: None for those that are
        left.
        """
        ends = await asyncio.gather(*(self._commit_one(queue, outcome) for outcome in outcomes))
        left = [end for end in ends if not isinstance(end, Verdict)]
        return left, [end if isinstance(end, Verdict) else None for end in ends]

    async def _commit_one(self, queue: QueueRow, outcome: Outcome) -> Verdict | Outcome:
        held = own(outcome.claim)
        if not held.transactional:
            return outcome
        if isinstance(outcome, Completed):
            calls, _ = self.settling.calls(queue, [outcome])
            committed = await held.commit(outcome, calls[0])
            if held.blocking:
                await self._dependents.first_ended(self._name, [held.job.id], [])
            return committed
        await held.roll_back()
        return outcome

    # --- the rest of the contract -----------------------------------------------------------------------------------

    async def _prepared(self) -> QueueRow:
        queue = self._queue
        if queue is not None and self._queues.is_fresh(queue):
            return queue
        async with self._ready:
            first = self._queue is None
            queue = self._queue = await self._queues.ensure(self._name)
            if first:
                await self._store.try_side()
                if self._memory is not None:
                    await self._memory.make(self._store)
                await self._store.wakeup.start(self._name)
        return queue

    async def _moved(self, outcomes: Sequence[Outcome]) -> Settled:
        """Reports every claim as lost: the queue's own table was deleted with all its jobs."""
        self._queues.forget(self._name)
        self._queue = None
        return Settled([Verdict.LOST] * len(outcomes))

    async def wait(self, timeout: float) -> None:
        queue = await self._prepared()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while (left := deadline - loop.time()) > 0:
            # A queue without notifications is polled. In one with notifications, a job that comes without one (from a
            # foreign client, or because it was delayed by Node) waits until the timeout.
            notified = queue.notify and self._store.wakeup.listening
            if await self._store.wakeup.wait(self._name, left if notified else min(left, self.options.poll)):
                return
            if not notified and await self._is_anything_there(queue):
                return

    async def _is_anything_there(self, queue: QueueRow) -> bool:
        rows = await self._store.ask("anything_ready", {"queue": text(self._name)}, table=queue.table)
        return bool(rows)

    async def pass_on(self) -> None:
        self._store.wakeup.wake_one(self._name)

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        return await extend_in_batches(claims, self._extend)

    async def _extend(self, claims: Sequence[Claim]) -> Sequence[Claim]:
        queue = await self._queues.find(self._name)
        if queue is None:
            return claims
        values = fence_of(self._name, [own(claim) for claim in claims])
        try:
            kept = {job_id for (job_id,) in await self._store.ask("extend", values, table=queue.table)}
        except Refused as error:
            if error.sqlstate != UNDEFINED_TABLE:
                raise
            kept = set[str]()
        return [claim for claim in claims if claim.job.id not in kept]

    def duties(self) -> Sequence[Duty]:
        beat = Duty("keep heartbeats shorter than the lease", _SHORT_BEAT, self._beat)
        return [*self._duties.of(self.settings, self.options), beat]

    def claims_of(self, queue: QueueRow, rows: list[Row]) -> list[PgClaim]:
        """Returns the claims of a fetch. Remembers those of jobs whose own heartbeat is shorter than the lease."""
        claims = read_claims(self._store, queue, rows, lease=self._lease_seconds, worker_timeout=self.settings.timeout)
        for claim in claims:
            if claim.own_heartbeat is not None and claim.own_heartbeat < self.settings.lease:
                self._short.add(claim)
        return claims

    async def _count_lapses(self, queue: QueueRow, claims: list[PgClaim]) -> None:
        """Counts the recoveries that other clients made, since those do not count them. Marks jobs that were recovered
        too often, so that they fail."""
        lapsed = {claim.job.id: claim for claim in claims if claim.lapsed}
        if not self._store.has_side:
            return
        try:
            values = {"queue": text(self._name), "ids": plain_list(list(lapsed))}
            rows = await self._store.ask("count_lapse", values, table=queue.table)
        except JobwireError as error:  # the jobs are claimed already, and must run even if they can't be counted
            _log.warning(
                "could not count the recoveries of %s, which run all the same: %s", counted(len(lapsed), "job"), error
            )
            return
        for job_id, times in rows:
            if times > self.settings.max_stalled:
                lapsed[job_id].doomed = lapsed[job_id].doomed or STALLED

    async def _beat(self) -> DutyReport:
        if self._short:
            self._short.difference_update(await self.extend(list(self._short)))
        return DutyReport()

    async def reset(self) -> None:
        await self._store.reset()

    async def close(self) -> None:
        """Does nothing: connections belong to the backend, which may have other consumers."""
