"""One worker's hold on one pg-boss queue: claims, outcomes, leases."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jobwire.backend import (
    Claim,
    Completed,
    ConsumerSettings,
    Duty,
    DutyReport,
    Failed,
    Outcome,
    Released,
    Settled,
    Snoozed,
    Verdict,
)
from jobwire.backends.pgboss import pace
from jobwire.backends.pgboss.claims import PgClaim, read_claims
from jobwire.backends.pgboss.codec import CAN_NOT_HOLD, failure_output, output_of, storable
from jobwire.backends.pgboss.doorbell import Doorbell
from jobwire.backends.pgboss.duties import Duties
from jobwire.backends.pgboss.failure import UNDEFINED_TABLE, UNIQUE_VIOLATION, Refused
from jobwire.backends.pgboss.fetching import FetchPlan
from jobwire.backends.pgboss.queues import QueueRow, Queues
from jobwire.backends.pgboss.schema import own_channel
from jobwire.backends.pgboss.store import Store
from jobwire.backends.pgboss.wire import Call, Row, Value, plain_list, text
from jobwire.backends.pgboss.worker_options import WorkerOptions

_EXTEND_BATCH = 500
_SHORT_BEAT = 3.0
"""pg-boss allows heartbeats of ten seconds and more."""
_CONTENDED = 0.05
"""How soon to look again after another worker was quicker to take a key."""


@dataclass(slots=True)
class _Batch:
    """Outcomes of one kind, as the columns of a statement, and where they stood."""

    places: list[int]
    claims: list[PgClaim]


class PgConsumer:
    """Implements Consumer."""

    def __init__(
        self, store: Store, queues: Queues, doorbell: Doorbell, duties: Duties, settings: ConsumerSettings
    ) -> None:
        self.options = WorkerOptions.of(settings.native)
        self._store = store
        self._queues = queues
        self._doorbell = doorbell
        self._duties = duties
        self.settings = settings
        self._name = settings.queue
        self._lease = str(max(1, math.ceil(settings.lease))).encode()
        self._own_bell = text(own_channel(store.name))
        self._ready = asyncio.Lock()
        self._queue: QueueRow | None = None
        self._light = True
        self._planned: tuple[QueueRow, bool] | None = None
        self._fetch: FetchPlan
        self._short: set[PgClaim] = set()

    # --- claiming and settling --------------------------------------------------------------------------------------

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        queue = await self._prepared()
        outcomes = [_checked(outcome) for outcome in outcomes]
        if self._short:
            self._short.difference_update(_own(outcome.claim) for outcome in outcomes)
        transactional = False
        for outcome in outcomes:
            held = _own(outcome.claim)
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
            if error.sqlstate != UNIQUE_VIOLATION:
                raise
        # Somebody took a key between our look and our write; nothing of the call has happened.
        try:
            settled = await self._exchange(queue, outcomes, 0)
        except Refused as error:
            if error.sqlstate != UNIQUE_VIOLATION:
                raise
            settled = Settled([await self._settle_alone(queue, outcome) for outcome in outcomes])
        return Settled(settled.verdicts, next_in=_CONTENDED if claim else None)

    async def _exchange(self, queue: QueueRow, outcomes: Sequence[Outcome], claim: int) -> Settled:
        if claim > 0 and pace.is_wanted(self.settings, self.options):
            return await pace.exchange(self, self._store, queue, outcomes, wanted=claim, lease=self._lease)
        calls, kinds = self.settling(queue, outcomes)
        look_ahead = claim > 0 and self._light
        if claim > 0:
            calls += self._plan(queue).calls(self._name, claim, self._lease)
        if look_ahead:
            calls.append(self._next_due(queue))
        if not calls:
            return Settled()
        answers = await self._store.run(calls)
        verdicts = self.verdicts(outcomes, kinds, answers)
        if not claim:
            return Settled(verdicts)
        claims = self.noted(read_claims(self._store, queue, answers[-2 if look_ahead else -1]))
        return await self.looked(queue, verdicts, claims, claim, answers[-1][0][0] if look_ahead else None)

    async def looked(
        self, queue: QueueRow, verdicts: Sequence[Verdict], claims: list[PgClaim], asked: int, due: float | None
    ) -> Settled:
        """What to tell the engine of a claim: all of what it asked for, or less and when to come back."""
        if len(claims) >= asked:
            self._light = False
            self._doorbell.ring_on(self._name)
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

    # --- outcomes as statements -------------------------------------------------------------------------------------

    def settling(self, queue: QueueRow, outcomes: Sequence[Outcome]) -> tuple[list[Call], list[_Batch]]:
        """The statements that finish the outcomes, and which of them each one holds."""
        calls: list[Call] = []
        kinds: list[_Batch] = []
        completed = [(place, outcome) for place, outcome in enumerate(outcomes) if isinstance(outcome, Completed)]
        if completed:
            batch = _batch(completed)
            outputs = b"[" + b",".join([output_of(outcome.result) for _, outcome in completed]) + b"]"
            calls.append(self._call("complete", queue, batch, outputs=outputs))
            kinds.append(batch)
        if len(completed) == len(outcomes):
            return calls, kinds
        failed = [(place, outcome) for place, outcome in enumerate(outcomes) if isinstance(outcome, Failed)]
        if failed:
            batch = _batch(failed)
            outputs = b"[" + b",".join([failure_output(fault.error, fault.stack) for _, fault in failed]) + b"]"
            finals = plain_list(["true" if fault.final else "false" for _, fault in failed])
            waits = plain_list([fault.delay for _, fault in failed])
            calls.append(self._call("fail", queue, batch, outputs=outputs, finals=finals, waits=waits))
            kinds.append(batch)
        back = [(place, one) for place, one in enumerate(outcomes) if isinstance(one, (Released, Snoozed))]
        if back:
            batch = _batch(back)
            waits = plain_list([one.delay if isinstance(one, Snoozed) else None for _, one in back])
            calls.append(self._call("put_back", queue, batch, waits=waits, own_bell=self._own_bell))
            kinds.append(batch)
        return calls, kinds

    def _call(self, name: str, queue: QueueRow, batch: _Batch, **values: Value) -> Call:
        held = batch.claims
        fence: dict[str, Value] = {
            "queue": text(self._name),
            "ids": plain_list([claim.job.id for claim in held]),
            "attempts": plain_list([claim.attempt for claim in held]),
            "starts": starts_of(held),
            "heartbeats": plain_list([claim.own_heartbeat for claim in held]),
        }
        return self._store.statements.get(name, queue.table), fence | values

    def verdicts(
        self, outcomes: Sequence[Outcome], kinds: Sequence[_Batch], answers: Sequence[Sequence[Row]]
    ) -> list[Verdict]:
        verdicts = [Verdict.LOST] * len(outcomes)
        for batch, rows in zip(kinds, answers, strict=False):
            if not rows:
                continue
            settled = {row[0]: row for row in rows}
            for place in batch.places:
                outcome = outcomes[place]
                # One job twice in a batch: the second is a repetition, and the row is gone when it has been counted.
                row = settled.pop(outcome.claim.job.id, None)
                if row is not None:
                    verdicts[place] = _verdict(outcome, row)
        return verdicts

    async def _settle_alone(self, queue: QueueRow, outcome: Outcome) -> Verdict:
        """An outcome whose queued state is taken by another job of its key: as in pg-boss, it fails."""
        attempts: list[Outcome] = [outcome]
        claim = outcome.claim
        if isinstance(outcome, Failed):
            attempts.append(Failed(claim, outcome.error, outcome.stack, final=True))
        else:
            attempts.append(Failed(claim, "another job of this key waits in its place", final=True))
        for attempt in attempts:
            calls, kinds = self.settling(queue, [attempt])
            try:
                answers = await self._store.run(calls)
            except Refused as error:
                if error.sqlstate != UNIQUE_VIOLATION:
                    raise
                continue
            return self.verdicts([attempt], kinds, answers)[0]
        return Verdict.LOST

    # --- handlers with a transaction of their own -------------------------------------------------------------------

    async def _commit(self, queue: QueueRow, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], list[Verdict | None]]:
        """Jobs whose handlers took a connection are completed on it and committed with what the handler wrote.

        The outcomes that are left to settle, and the verdicts in the order of all; None for those that are left.
        """
        ends = await asyncio.gather(*(self._commit_one(queue, outcome) for outcome in outcomes))
        left = [end for end in ends if not isinstance(end, Verdict)]
        return left, [end if isinstance(end, Verdict) else None for end in ends]

    async def _commit_one(self, queue: QueueRow, outcome: Outcome) -> Verdict | Outcome:
        held = _own(outcome.claim)
        if not held.transactional:
            return outcome
        if isinstance(outcome, Completed):
            calls, _ = self.settling(queue, [outcome])
            return await held.commit(outcome, calls[0])
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
                await self._doorbell.answer()
        return queue

    async def _moved(self, outcomes: Sequence[Outcome]) -> Settled:
        """The queue's own table is gone, and every job of ours with it."""
        self._queues.forget(self._name)
        self._queue = None
        return Settled([Verdict.LOST] * len(outcomes))

    async def wait(self, timeout: float) -> None:
        queue = await self._prepared()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while (left := deadline - loop.time()) > 0:
            # Without a bell the queue is looked at; with one, jobs that nobody rings for wait until the time is over.
            quiet = queue.notify and self._doorbell.works
            if await self._doorbell.sleep(self._name, left if quiet else min(left, self.options.poll)):
                return
            if not quiet and await self._is_anything_there(queue):
                return

    async def _is_anything_there(self, queue: QueueRow) -> bool:
        rows = await self._store.ask("anything_ready", {"queue": text(self._name)}, table=queue.table)
        return bool(rows)

    async def pass_on(self) -> None:
        self._doorbell.ring(self._name)

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        queue = await self._queues.find(self._name)
        if queue is None:
            return list(claims)
        lost: list[Claim] = []
        for start in range(0, len(claims), _EXTEND_BATCH):
            held = [_own(claim) for claim in claims[start : start + _EXTEND_BATCH]]
            values: dict[str, Value] = {
                "queue": text(self._name),
                "ids": plain_list([claim.job.id for claim in held]),
                "attempts": plain_list([claim.attempt for claim in held]),
                "starts": starts_of(held),
            }
            try:
                kept = {row[0] for row in await self._store.ask("touch", values, table=queue.table)}
            except Refused as error:
                if error.sqlstate != UNDEFINED_TABLE:
                    raise
                kept = set[str]()
            lost += [claim for claim in held if claim.job.id not in kept]
        return lost

    def duties(self) -> Sequence[Duty]:
        beat = Duty("keep heartbeats shorter than the lease", _SHORT_BEAT, self._beat)
        return [*self._duties.of(self.settings, self.options), beat]

    def noted(self, claims: list[PgClaim]) -> list[PgClaim]:
        """Remember claims of jobs that promise a sign of life more often than the lease is renewed."""
        for claim in claims:
            if claim.own_heartbeat is not None and claim.own_heartbeat < self.settings.lease:
                self._short.add(claim)
        return claims

    async def _beat(self) -> DutyReport:
        if self._short:
            self._short.difference_update(await self.extend(list(self._short)))
        return DutyReport()

    async def reset(self) -> None:
        self._doorbell.hang_up()
        await self._store.reset()

    async def close(self) -> None:
        """Connections belong to the backend, which may have other consumers."""


def starts_of(claims: Sequence[PgClaim]) -> bytes:
    return ('{"' + '","'.join(claim.started for claim in claims) + '"}').encode()


def _batch(placed: Sequence[tuple[int, Outcome]]) -> _Batch:
    return _Batch([place for place, _ in placed], [_own(outcome.claim) for _, outcome in placed])


def _own(claim: Claim) -> PgClaim:
    assert isinstance(claim, PgClaim)  # noqa: S101 - made by this backend
    return claim


def _checked(outcome: Outcome) -> Outcome:
    """A result that the database can't hold fails its job, and not the batch that it is in."""
    if isinstance(outcome, Completed) and not storable(outcome.result):
        return Failed(outcome.claim, f"the result can't be stored: {CAN_NOT_HOLD}", final=True)
    return outcome


def _verdict(outcome: Outcome, row: Row) -> Verdict:
    match outcome:
        case Completed():
            return Verdict.COMPLETED
        case Failed():
            return Verdict.RETRIED if row[1] == "retry" else Verdict.FAILED
        case Released():
            return Verdict.RELEASED
        case Snoozed():
            return Verdict.SNOOZED
