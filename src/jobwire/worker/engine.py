"""The engine: claims jobs, runs them, settles them in groups.

A job's life here: a lane claims it, it runs in a task of its own, its outcome joins the others that are ready, and the
next lane that is free sends them all in one call, which also claims as many new jobs as there are free slots. While
that call is under way outcomes gather again. With two lanes one call is on its way while the results of the other are
handled, which keeps the store and the worker busy at the same time (measured on BullMQ state, no-op jobs: one call of
100 at a time 14k jobs/s, two of 50 in flight 23k).

A claim is held, and its lease renewed, from the call that claimed it to the verdict on its outcome. If the store goes
away, running jobs go on, outcomes wait in memory, and claiming resumes when it answers again.

A paused engine claims no more; everything else goes on. A wait for work is ended at once: what it brings could not be
run. A consumer may have taken a wake-up, or a job along with it, that no claim of ours will ask for now, so it is told
to pass these on to other workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from itertools import chain
from typing import Any

from jobwire.boundary import Backend, Claim, Completed, Consumer, Failed, Outcome, Settled, Verdict
from jobwire.deadline import deadline
from jobwire.errors import JobwireError, StoreRefused
from jobwire.journal import Journal
from jobwire.worker.handlers import Runner
from jobwire.worker.keeper import LockKeeper
from jobwire.worker.observers import Observers
from jobwire.worker.outage import Outage
from jobwire.worker.running import RunningJobs
from jobwire.worker.stats import Stats

_SETTLE_TOGETHER = 200
_LONGEST_WAIT = 5.0
_GRACE = 5.0
_STRIKES = 3
_LAST_CALLS = 3.0
"""How long calls under way may take to end once they are cancelled, in seconds."""


class Engine:
    """Runs until `finish` has been called and nothing is left to do."""

    def __init__(
        self,
        *,
        backend: Backend,
        consumer: Consumer,
        runner: Runner,
        keeper: LockKeeper,
        outage: Outage,
        stats: Stats,
        journal: Journal,
        observers: Observers,
        concurrency: int,
        timeout: float | None,
        call_timeout: float,
        paused: bool = False,
    ) -> None:
        self._backend = backend
        self._consumer = consumer
        self._keeper = keeper
        self._outage = outage
        self._stats = stats
        self._journal = journal
        self._observers = observers
        self._concurrency = concurrency
        self._lanes = 2 if concurrency >= backend.capabilities.split_from else 1
        self._share = -(-concurrency // self._lanes)
        self._call_timeout = call_timeout
        self.running = RunningJobs(
            backend=backend, runner=runner, leases=self, journal=journal, timeout=timeout, on_end=self._end
        )
        self._outcomes: list[Outcome] = []
        self._in_flight: list[list[Outcome]] = []
        self._reserved = 0
        self._calls = 0
        self._claiming = True
        self._paused = paused
        self._must_pass_on = False
        """The consumer may hold a wake-up or a job that a paused worker does not ask for."""
        self._listener_rests = False
        self._work_may_be_there = True
        self._wakeups = 0
        self._settle_limit = _SETTLE_TOGETHER
        self._strikes: dict[Claim, int] = {}
        self._next_in: float | None = None
        self._waits_until = 0.0
        self._due: asyncio.TimerHandle | None = None
        self._blocked_until = 0.0
        self._bell = asyncio.Event()
        self._hungry = asyncio.Event()
        self._waiting: deadline | None = None
        """The limit of a wait for work that is under way."""
        self._advanced = asyncio.Event()
        """Set when a call has ended or the listener rests: `drained` looks again."""

    # --- from outside -----------------------------------------------------------------------------------------------

    async def run(self, companions: Sequence[Coroutine[Any, Any, None]] = ()) -> None:
        """Work until finished. Raises StoreUnavailable when the store stays away beyond the allowed attempts.

        The companions run as long. If one of them fails, the engine fails: a worker that has lost a part of itself
        must not look alive.
        """
        lanes = {asyncio.create_task(self._lane()) for _ in range(self._lanes)}
        others = {asyncio.create_task(part) for part in (self._listen(), *companions)}
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
        """Claim no more; `run` returns when the running jobs have been settled."""
        self._claiming = False
        self._end_wait()
        self._bell.set()
        self._hungry.set()

    def pause(self) -> None:
        """Claim no more until `resume` is called. Running jobs, leases and duties go on."""
        if not self._paused:
            self._paused = True
            self._end_wait()
            self._ask_to_pass_on()

    def resume(self) -> None:
        """Claim again, at once."""
        if self._paused:
            self._paused = self._must_pass_on = False
            self._ring()
            self._advanced.set()

    async def drained(self) -> None:
        """Return when every job that a paused engine had claimed is settled, or when it is resumed."""
        while self._paused and self._is_at_work():
            self._advanced.clear()
            await self._advanced.wait()

    def hand_back(self) -> None:
        """Stop the running handlers; their jobs go back to the store without being charged an attempt."""
        self.finish()
        self.running.cancel_all()

    def unsettled(self) -> list[str]:
        """Ids of jobs whose outcome the store has not acknowledged."""
        return [*self.running.ids(), *(outcome.claim.job.id for outcome in (*chain(*self._in_flight), *self._outcomes))]

    async def renew(self, claim: Claim) -> bool:
        """Renew one lease now; False if it is no longer ours."""
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
        """Settle what is ready and claim for the free slots, in one call; False if there is neither."""
        outcomes, slots = self._take()
        if not outcomes and not slots:
            return False
        self._reserved += slots
        if outcomes:
            self._in_flight.append(outcomes)
        try:
            await self._exchange(outcomes, slots)
        finally:
            self._reserved -= slots
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
            await self._outage.endure(error, self._consumer.reset)
        except (
            Exception
        ) as error:  # a fault of ours or of a driver: it may be one outcome's, and must not end the worker
            await self._put_back(outcomes, error)
            await self._outage.endure(error, self._consumer.reset)
        else:
            self._outage.over()
            self._stats.calls += 1
            self._stats.last_call = time.monotonic()
            self._settle_limit = _SETTLE_TOGETHER
            self._conclude(outcomes, settled.verdicts)
            self._begin(settled.claims, since)
            if slots or settled.blocked_for > 0:
                self._look_ahead(slots, settled, wakeups)
        # Whatever came of it: outcomes may wait again, and a slot is free again.
        self._bell.set()

    async def _call(self, outcomes: list[Outcome], slots: int) -> Settled:
        """Counted while it is under way: its answer may bring jobs, and these must not be left to their leases."""
        self._calls += 1
        try:
            async with deadline(self._call_timeout):
                return await self._consumer.settle(outcomes, slots)
        finally:
            self._calls -= 1
            if not self._claiming:
                self._bell.set()
            if self._paused and slots:
                self._ask_to_pass_on()  # it may have failed to take a job that the consumer had in hand for it

    def _take(self) -> tuple[list[Outcome], int]:
        outcomes = self._outcomes[: self._settle_limit]
        del self._outcomes[: len(outcomes)]
        slots = 0
        if self._takes_jobs() and (outcomes or self._work_may_be_there) and time.monotonic() >= self._blocked_until:
            slots = min(self._concurrency - len(self.running) - self._reserved, self._share)
        return outcomes, max(slots, 0)

    def _done(self) -> bool:
        return not (self._claiming or self._has_jobs())

    def _has_jobs(self) -> bool:
        return bool(self.running or self._outcomes or self._in_flight or self._calls)

    def _is_at_work(self) -> bool:
        """True while a paused engine has jobs, or its consumer may have: unless the store is away, which may last."""
        return self._has_jobs() or (self._outage.connected and (self._must_pass_on or not self._listener_rests))

    def _takes_jobs(self) -> bool:
        return self._claiming and not self._paused

    def _conclude(self, outcomes: list[Outcome], verdicts: Sequence[Verdict]) -> None:
        for outcome, verdict in zip(outcomes, verdicts, strict=True):
            claim = outcome.claim
            self._keeper.let_go(claim)
            self._stats.count(verdict)
            self._observers.settled(outcome, verdict)
            if verdict is Verdict.LOST:
                self._journal.warning(
                    "the outcome of job %s was refused: its lease had ended, and another worker may run it",
                    claim.job.id, extra={"job": claim.job.id},
                )  # fmt: skip

    async def _put_back(self, outcomes: list[Outcome], refusal: Exception | None) -> None:
        """Keep outcomes that were not taken for the next call. A refusal may be due to one of them, which must not hold
        up the others: go on in halves, and replace the one that is refused again and again."""
        if refusal is not None:
            self._settle_limit = max(1, len(outcomes) // 2)
            if len(outcomes) == 1:
                outcomes = await self._strike(outcomes[0], refusal)
        self._outcomes[:0] = outcomes

    async def _strike(self, outcome: Outcome, refusal: Exception) -> list[Outcome]:
        """What is left to send of an outcome that was refused alone. At the third time the store is asked whether it
        takes anything at all for this job. If so the outcome is at fault: a result becomes a failure that names the
        refusal, and any other outcome is given up, so that the job is recovered when its lease expires."""
        claim = outcome.claim
        strikes = self._strikes[claim] = self._strikes.get(claim, 0) + 1
        if strikes < _STRIKES or not await self._takes(claim):
            return [outcome]
        del self._strikes[claim]
        if isinstance(outcome, Completed):
            self._journal.error("the store refuses the result of job %s (%s): the job fails", claim.job.id, refusal)
            return [Failed(claim, f"the store refuses the result: {refusal}")]
        self._journal.error("giving up job %s: the store refuses its outcome (%s)", claim.job.id, refusal)
        self._conclude([outcome], [Verdict.LOST])
        return []

    async def _takes(self, claim: Claim) -> bool:
        try:
            async with deadline(self._call_timeout):
                await self._consumer.extend([claim])
        except Exception:  # then the store is in trouble, not this outcome
            return False
        return True

    def _look_ahead(self, slots: int, settled: Settled, wakeups: int) -> None:
        """Decide from a claim's answer whether to claim again at once, later, or when the store says so."""
        if settled.blocked_for > 0:
            self._blocked_until = max(self._blocked_until, time.monotonic() + settled.blocked_for)
            asyncio.get_running_loop().call_later(settled.blocked_for, self._ring)
        # A wake-up that came while the call was under way may be for a job that the call was too early to see.
        elif len(settled.claims) < slots and wakeups == self._wakeups:
            self._work_may_be_there = False
            self._next_in = settled.next_in
            self._hungry.set()
            if settled.next_in is not None:
                self._wake_in(settled.next_in)
        else:
            self._work_may_be_there = True

    def _wake_in(self, seconds: float) -> None:
        """Claim when a job comes due, if the listener is in a wait that began before that time was known."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if due >= self._waits_until or (self._due is not None and self._due.when() <= due):
            return
        if self._due is not None:
            self._due.cancel()
        self._due = loop.call_at(due, self._come_due)

    def _come_due(self) -> None:
        self._due = None
        self._ring()

    def _ring(self) -> None:
        self._wakeups += 1
        self._work_may_be_there = True
        self._bell.set()

    # --- jobs -------------------------------------------------------------------------------------------------------

    def _begin(self, claims: Sequence[Claim], since: float) -> None:
        self._stats.claimed += len(claims)
        self._keeper.hold(claims, since)
        for claim in claims:
            self.running.start(claim)
            self._observers.started(claim)

    def _end(self, outcome: Outcome) -> None:
        self._outcomes.append(outcome)
        self._bell.set()

    # --- waiting for work -------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """While there is a free slot and nothing to claim, wait for the store to say that there is."""
        while self._claiming:
            self._hungry.clear()
            if self._must_pass_on:
                await self._pass_on()
            elif self._work_may_be_there or not self._has_free_slot():
                await self._rest()
            else:
                await self._wait_for_work()

    async def _rest(self) -> None:
        self._listener_rests = True
        self._advanced.set()
        await self._hungry.wait()
        self._listener_rests = False

    async def _wait_for_work(self) -> None:
        timeout = _LONGEST_WAIT if self._next_in is None else min(self._next_in, _LONGEST_WAIT)
        self._waits_until = asyncio.get_running_loop().time() + timeout
        limit = deadline(timeout + _GRACE)
        try:
            async with limit:
                self._waiting = limit
                try:
                    await self._consumer.wait(timeout)
                finally:
                    self._waiting = None
                if not self._has_free_slot():
                    await self._consumer.pass_on()
        except Exception as error:  # whatever it is, the worker tries again
            if self._claiming and not limit.ended:
                await self._outage.endure(error, self._consumer.reset)
        self._waits_until = 0.0
        self._wakeups += 1
        self._work_may_be_there = True
        await self._turn()  # at once, rather than waking a lane to do it

    def _end_wait(self) -> None:
        if self._waiting is not None:
            self._waiting.end()  # what a wait brings from now on could not be run

    def _ask_to_pass_on(self) -> None:
        self._must_pass_on = True
        self._hungry.set()

    async def _pass_on(self) -> None:
        """Leave to other workers what a paused one was woken for. Tried again until it succeeds: the lease of a job
        among it is not renewed."""
        self._must_pass_on = False
        try:
            async with deadline(self._call_timeout):
                await self._consumer.pass_on()
        except Exception as error:  # as in a wait
            self._must_pass_on = self._paused
            self._advanced.set()
            if self._claiming:
                await self._outage.endure(error, self._consumer.reset)
        else:
            self._outage.over()

    def _has_free_slot(self) -> bool:
        return self._takes_jobs() and len(self.running) + self._reserved < self._concurrency
