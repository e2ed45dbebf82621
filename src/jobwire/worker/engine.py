"""The engine: claims jobs, runs them, and settles them in groups.

A job's life here: a lane claims it, it runs in a task of its own, its outcome joins the others that are ready, and the
next lane that is free sends them all in one call, which also claims as many new jobs as there are free slots. While
that call is under way outcomes gather again. With two lanes one call is on its way while the results of the other are
handled, which keeps the store and the worker busy at the same time (measured on BullMQ state, no-op jobs: one call of
100 at a time 14k jobs/s, two of 50 in flight 23k).

A claim is held, and its lease extended, from the call that claimed it to the verdict on its outcome. If the store is
unavailable, running jobs go on, outcomes wait in memory, and claiming resumes when the store answers again.

A paused engine claims no more. Everything else goes on. Its wait for work is ended at once (see `listener`).

A worker has an engine for each of its queues. They share the worker's slots (see `slots`) and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from itertools import chain
from typing import Any

from jobwire.boundary import Backend, Claim, Consumer, Outcome, Settled, Verdict
from jobwire.deadline import deadline
from jobwire.errors import JobwireError, StoreRefused
from jobwire.journal import Journal, fields_of
from jobwire.worker.handlers import Runner
from jobwire.worker.keeper import HeldLeases
from jobwire.worker.listener import Listener
from jobwire.worker.observers import Observers
from jobwire.worker.outage import Outage
from jobwire.worker.refused_outcomes import RefusedOutcomes
from jobwire.worker.running import RunningJobs
from jobwire.worker.slots import Slots
from jobwire.worker.stats import Stats

_LAST_CALLS = 3.0
"""Seconds that calls under way may take to end once they are cancelled."""


class Engine:
    """Works on one queue until `finish` has been called and no job is left."""

    def __init__(
        self,
        *,
        backend: Backend,
        consumer: Consumer,
        runner: Runner,
        leases: HeldLeases,
        outage: Outage,
        stats: Stats,
        journal: Journal,
        observers: Observers,
        slots: Slots,
        concurrency: int,
        timeout: float | None,
        call_timeout: float,
        paused: bool = False,
    ) -> None:
        self._consumer = consumer
        self._leases = leases
        self._stats = stats
        self._journal = journal
        self._observers = observers
        self._slots = slots.share(self, concurrency, asks=not paused)
        self._lanes = 2 if self._slots.limit >= backend.capabilities.split_from else 1
        self._per_call = -(-self._slots.limit // self._lanes)
        self._call_timeout = call_timeout
        self.outage = outage
        self.running = RunningJobs(
            backend=backend, runner=runner, leases=self, journal=journal, timeout=timeout, on_end=self._end,
            worker_is_cancelled=self._is_cancelled,
        )  # fmt: skip
        self._outcomes: list[Outcome] = []
        self._in_flight: list[list[Outcome]] = []
        self._reserved = 0
        self._calls = 0
        self.claiming = True
        self._paused = paused
        self._work_may_be_there = True
        self._wakeups = 0
        self._refused = RefusedOutcomes(consumer, call_timeout, journal)
        self._listener = Listener(consumer, self, outage, call_timeout)
        self._blocked_until = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._bell = asyncio.Event()
        self._advanced = asyncio.Event()
        """Set when a call has ended or the listener rests, so that `drained` and `quiet` look again."""

    # --- from outside -----------------------------------------------------------------------------------------------

    async def run(self, companions: Sequence[Coroutine[Any, Any, None]] = ()) -> None:
        """Works until finished. Raises StoreUnavailable if the store does not answer within the allowed attempts.

        The companions, such as duties, run as long. If one of them fails, the engine fails too: a worker without its
        keeper or its duties must not go on as if nothing had happened.
        """
        lanes = self._tasks = {asyncio.create_task(self._lane()) for _ in range(self._lanes)}
        others = {asyncio.create_task(part) for part in (self._listener.run(), *companions)}
        working, waiting = lanes, lanes | others
        try:
            while working:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for part in done:
                    part.result()
                working = working - done
        finally:
            self.finish()
            for task in (*lanes, *others):
                task.cancel()
            await asyncio.wait((*lanes, *others), timeout=_LAST_CALLS)

    def finish(self) -> None:
        """Stops claiming. `run` returns when the running jobs have been settled."""
        self.claiming = False
        self._slots.withdraw()
        self._listener.end_wait()
        self._listener.check()
        self._bell.set()

    def pause(self) -> None:
        """Stops claiming until `resume` is called. Running jobs, leases and duties go on."""
        if not self._paused:
            self._paused = True
            self._slots.withdraw()
            self._listener.end_wait()
            self._listener.pass_on()

    def resume(self) -> None:
        """Claims again, at once."""
        if self._paused:
            self._paused = False
            self._listener.keep()
            self.look()
            self._advanced.set()

    async def drained(self) -> None:
        """Returns when every job that a paused engine had claimed is settled, or when the engine is resumed."""
        while self._paused and self._is_at_work():
            self._advanced.clear()
            await self._advanced.wait()

    @property
    def is_quiet(self) -> bool:
        """True if no job is left here, and the last claim has found none that is ready."""
        return not (self._has_jobs() or self._work_may_be_there or self._listener.expects_now)

    async def quiet(self) -> None:
        """Returns when the engine is quiet."""
        while not self.is_quiet:
            self._advanced.clear()
            await self._advanced.wait()

    def hand_back(self) -> None:
        """Stops the running handlers. Their jobs are released."""
        self.finish()
        self.running.cancel_all()

    def _is_cancelled(self) -> bool:
        """Returns True if the engine's own tasks are being cancelled, as at the end of `asyncio.run`."""
        return any(task.cancelling() for task in self._tasks)

    def unsettled(self) -> list[str]:
        """Returns the ids of jobs whose outcome the store has not acknowledged."""
        return [*self.running.ids(), *(outcome.claim.job.id for outcome in (*chain(*self._in_flight), *self._outcomes))]

    async def extend(self, claim: Claim) -> bool:
        """Extends one lease now. Returns False if the claim is lost."""
        return not await self._consumer.extend([claim])

    # --- lanes ------------------------------------------------------------------------------------------------------

    async def _lane(self) -> None:
        while True:
            if await self._turn():
                continue
            if self._done():
                self._bell.set()
                return
            self._bell.clear()
            await self._bell.wait()

    async def _turn(self) -> bool:
        """Settles waiting outcomes and claims for the free slots, in one call. Returns False if there is neither."""
        outcomes, slots = self._take()
        if not outcomes and not slots:
            return False
        if outcomes:
            self._in_flight.append(outcomes)
        try:
            await self._exchange(outcomes, slots)
        finally:
            if outcomes:
                self._in_flight.remove(outcomes)
            self._advanced.set()
        return True

    async def _exchange(self, outcomes: list[Outcome], slots: int) -> None:
        since, wakeups = time.monotonic(), self._wakeups
        try:
            settled = await self._call(outcomes, slots)
        except (JobwireError, TimeoutError) as error:
            await self._put_back(outcomes, error if isinstance(error, StoreRefused) else None)
            await self._endure(error)
        except Exception as error:
            # An unexpected error of ours or of a driver. One outcome may cause it, so it must not end the worker.
            await self._put_back(outcomes, error)
            await self._endure(error)
        else:
            self.outage.over()
            self._stats.calls += 1
            self._stats.last_call = time.monotonic()
            self._refused.clear(outcomes)
            self._conclude(outcomes, settled.verdicts)
            self._begin(settled.claims, since)
            if slots or settled.blocked_for > 0:
                self._look_ahead(slots, settled, wakeups)
        # Also after a failure: outcomes may wait again, and a slot may be free again.
        self._bell.set()

    async def _call(self, outcomes: list[Outcome], slots: int) -> Settled:
        """Calls the store. The call is counted while it is under way: its answer may bring jobs, which a worker that
        stops must not leave to their leases."""
        self._calls += 1
        try:
            async with deadline(self._call_timeout):
                return await self._consumer.settle(outcomes, slots)
        finally:
            self._calls -= 1
            self._reserved -= slots
            if slots:
                self._slots.freed()  # other queues look later, when the claimed jobs have taken their slots
            if not self.claiming:
                self._bell.set()
            if self._paused and slots:
                self._listener.pass_on()  # the call may have failed to take a job that the consumer holds for it

    def _take(self) -> tuple[list[Outcome], int]:
        outcomes = self._outcomes[: self._refused.limit]
        del self._outcomes[: len(outcomes)]
        may_claim = self._takes_jobs() and time.monotonic() >= self._blocked_until
        wanted = self._per_call if may_claim and (outcomes or self._work_may_be_there) else 0
        slots = self._slots.take(wanted, asks_on=self._work_may_be_there)
        self._reserved += slots
        return outcomes, slots

    def _done(self) -> bool:
        return not (self.claiming or self._has_jobs())

    def _has_jobs(self) -> bool:
        return bool(self.running or self._outcomes or self._in_flight or self._calls)

    def _is_at_work(self) -> bool:
        """Returns True while a paused engine has jobs, or its consumer may have some. A consumer whose store is
        unavailable does not count, since that may last."""
        return self._has_jobs() or (self.outage.connected and not self._listener.idle)

    def _takes_jobs(self) -> bool:
        return self.claiming and not self._paused

    def _conclude(self, outcomes: list[Outcome], verdicts: Sequence[Verdict], *, dropped: bool = False) -> None:
        """Ends the claims of outcomes that the store has answered, or that were dropped, which is logged already."""
        for outcome, verdict in zip(outcomes, verdicts, strict=True):
            claim = outcome.claim
            self._leases.let_go(claim)
            self._stats.count(verdict)
            self._observers.settled(outcome, verdict)
            if verdict is Verdict.LOST and not dropped:
                self._journal.warning(
                    "the store refused the outcome of job %s: its lease had ended, and another worker may run it",
                    claim.job.id, extra=fields_of(claim, final=False),
                )  # fmt: skip

    async def _put_back(self, outcomes: list[Outcome], refusal: Exception | None) -> None:
        """Keeps outcomes that were not taken for the next call."""
        if refusal is not None and outcomes:
            outcomes, dropped = await self._refused.after(outcomes, refusal)
            self._conclude(dropped, [Verdict.LOST] * len(dropped), dropped=True)
        self._outcomes[:0] = outcomes

    def _look_ahead(self, slots: int, settled: Settled, wakeups: int) -> None:
        """Decides from the answer to a claim whether to claim again at once, at a given time, or after a wakeup."""
        if settled.blocked_for > 0:
            self._blocked_until = max(self._blocked_until, time.monotonic() + settled.blocked_for)
            self._slots.withdraw()
            asyncio.get_running_loop().call_later(settled.blocked_for, self.look)
        # A wakeup that came while the call was under way may be for a job that the call was too early to see.
        elif len(settled.claims) < slots and wakeups == self._wakeups:
            self._work_may_be_there = False
            self._slots.withdraw()
            self._listener.expect(settled.next_in)
        else:
            self._work_may_be_there = True

    async def _endure(self, error: Exception) -> None:
        self._slots.withdraw()
        await self.outage.endure(error, self._consumer.reset)

    # --- jobs -------------------------------------------------------------------------------------------------------

    def _begin(self, claims: Sequence[Claim], since: float) -> None:
        self._stats.claimed += len(claims)
        self._leases.hold(claims, since)
        for claim in claims:
            self.running.start(claim)
            self._observers.started(claim)

    def _end(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        self._bell.set()
        self._slots.freed()

    # --- for the listener and the slots -----------------------------------------------------------------------------

    def needs_wakeup(self) -> bool:
        return not self._work_may_be_there and self._takes_jobs() and self._slots.may_wait

    def has_free_slot(self) -> bool:
        return self._takes_jobs() and self._slots.has_free

    def look(self) -> None:
        self._wakeups += 1
        self._work_may_be_there = True
        self._bell.set()

    async def look_now(self) -> None:
        self._wakeups += 1
        self._work_may_be_there = True
        await self._turn()  # at once, rather than waking a lane to do it

    def advanced(self) -> None:
        self._advanced.set()

    @property
    def slots_used(self) -> int:
        return len(self.running) + self._reserved

    def slots_freed(self) -> None:
        if self._slots.short:
            self._bell.set()
        elif self._listener.rests:
            self._listener.check()

    def slots_gone(self) -> None:
        if self._listener.end_wait():
            self._listener.pass_on()
