"""The engine against a scripted store, in every order of events that hypothesis finds.

The store answers a call when the test says so: with success, with an error before or after it has done what was asked,
with a refusal, or not at all. Jobs come, handlers end, leases are taken away, wake-ups come and fail to come, some of
them with a job in hand, jobs are cancelled, and the worker is paused, resumed and stopped at any moment. Time is
virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobwire.backends.memory.rules import CAPABILITIES
from jobwire.boundary import (
    Claim,
    Completed,
    Duty,
    Failed,
    Outcome,
    Released,
    Settled,
    Snoozed,
    Verdict,
)
from jobwire.errors import Snooze, StoreRefused, StoreUnavailable
from jobwire.journal import Journal
from jobwire.model import Job
from jobwire.worker import engine, outage, running
from jobwire.worker.active import ActiveJob
from jobwire.worker.engine import Engine
from jobwire.worker.observers import Observers
from jobwire.worker.outage import Outage
from jobwire.worker.slots import Slots
from jobwire.worker.stats import Stats
from worker.virtual_time import VirtualTimeLoop

CALL_TIMEOUT = 30.0
ANSWERS = ["done", "away", "reply lost", "refused", "broken", "silent"]
VERDICTS = {Completed: Verdict.COMPLETED, Failed: Verdict.FAILED, Released: Verdict.RELEASED, Snoozed: Verdict.SNOOZED}


class Call:
    """A settle that waits for its answer."""

    def __init__(self, outcomes: Sequence[Outcome], claim: int, answer: asyncio.Future[str]) -> None:
        self.outcomes = list(outcomes)
        self.claim = claim
        self.answer = answer
        self.done: Settled | None = None
        """What the store has answered, once the call has reached it."""


class Store:
    """Implements Consumer over a list of waiting jobs and the tokens of active ones."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.active: dict[str, str] = {}
        self.finished: list[str] = []
        self.tokens = 0
        self.calls: list[Call] = []
        self.waits: list[asyncio.Future[None]] = []
        self.brought: list[Claim] = []
        """Claimed along with a wait: the next claim takes them, or they go back."""
        self.paused = False
        self.claimed_while_paused = False
        self.passed_on = 0
        self.can_pass_on = True

    async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
        self.claimed_while_paused |= self.paused and claim > 0
        call = Call(outcomes, claim, asyncio.get_running_loop().create_future())
        self.calls.append(call)
        try:
            answer = await call.answer
        finally:
            self.calls.remove(call)
        match answer:
            case "away":
                raise StoreUnavailable("away")
            case "refused":
                raise StoreRefused("refused")
            case "broken":
                raise KeyError("a fault of the driver")
            case _:
                settled = self.reach(call)
        if answer == "reply lost":
            raise StoreUnavailable("the connection was reset")
        return settled

    def reach(self, call: Call) -> Settled:
        """Do what a call asks for, once."""
        if call.done is None:
            call.done = self._do(call)
        return call.done

    def _do(self, call: Call) -> Settled:
        verdicts: list[Verdict] = []
        for outcome in call.outcomes:
            job, token = outcome.claim.job.id, outcome.claim.token
            if self.active.get(job) != token:
                verdicts.append(Verdict.LOST)
                continue
            del self.active[job]
            if isinstance(outcome, (Completed, Failed)):
                self.finished.append(job)
            else:
                self.waiting.insert(0, job)
            verdicts.append(VERDICTS[type(outcome)])
        brought, self.brought = self.brought[: call.claim], self.brought[call.claim :]
        room = call.claim - len(brought)
        taken, self.waiting = self.waiting[:room], self.waiting[room:]
        return Settled(verdicts, [*brought, *(self._start(job) for job in taken)])

    def _start(self, job: str) -> Claim:
        self.tokens += 1
        self.active[job] = f"token {self.tokens}"
        return Claim(Job(job, "q", "q", None), self.active[job])

    async def wait(self, timeout: float) -> None:
        if self.brought:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waits.append(woken)
        try:
            await asyncio.wait([woken], timeout=timeout)
        except asyncio.CancelledError:
            self._take_back()
            raise
        finally:
            self.waits.remove(woken)

    def bring(self) -> None:
        """Let a wait end with a job in hand."""
        self.brought.append(self._start(self.waiting.pop(0)))
        self.waits[0].set_result(None)

    def _take_back(self) -> None:
        brought, self.brought = self.brought, []
        for claim in brought:
            if self.active.get(claim.job.id) == claim.token:
                del self.active[claim.job.id]
                self.waiting.insert(0, claim.job.id)

    async def pass_on(self) -> None:
        self.passed_on += 1
        if not self.can_pass_on:
            raise StoreUnavailable("away")
        if not any(call.claim for call in self.calls):  # otherwise a claim under way will take them
            self._take_back()

    async def extend(self, claims: Sequence[Claim]) -> Collection[Claim]:
        return [claim for claim in claims if self.active.get(claim.job.id) != claim.token]

    def duties(self) -> Sequence[Duty]:
        return []

    async def reset(self) -> None: ...

    async def close(self) -> None: ...


class Keeper:
    """Stands for the thread that extends leases: knows what is held."""

    def __init__(self) -> None:
        self.held: set[Claim] = set()

    def hold(self, claims: Sequence[Claim], since: float) -> None:
        self.held.update(claims)

    def let_go(self, claim: Claim) -> None:
        self.held.discard(claim)


class EngineStates(RuleBasedStateMachine):
    @initialize(concurrency=st.integers(1, 12), backlog=st.integers(0, 15))
    def start(self, concurrency: int, backlog: int) -> None:
        self.loop = VirtualTimeLoop()
        clock = SimpleNamespace(monotonic=self.loop.time)
        journal = Journal("w", "q")
        self.patches = [
            mock.patch.object(journal.logger, "disabled", True),
            mock.patch.object(engine, "time", clock),
            mock.patch.object(outage, "time", clock),
            mock.patch.object(running, "time", clock),
        ]
        for patch in self.patches:
            patch.start()
        self.store, self.keeper, self.stats = Store(), Keeper(), Stats()
        self.handlers: dict[Claim, asyncio.Future[Any]] = {}
        self.concurrency = concurrency
        self.added = 0
        self.stopped = False
        self.draining: list[asyncio.Task[None]] = []
        self.unnoticed = False
        """Jobs wait that no wake-up was sent for."""
        self.outage = Outage(journal, self.stats, 0)
        backend: Any = SimpleNamespace(capabilities=CAPABILITIES)
        self.engine = Engine(
            backend=backend,
            consumer=self.store,
            runner=self.handler,
            leases=self.keeper,  # type: ignore[arg-type]
            outage=self.outage,
            stats=self.stats,
            journal=journal,
            observers=Observers((), journal),
            slots=Slots(concurrency),
            concurrency=concurrency,
            timeout=None,
            call_timeout=CALL_TIMEOUT,
        )
        for _ in range(backlog):
            self.add_to_store()
        asyncio.set_event_loop(self.loop)
        self.run = self.loop.create_task(self.engine.run())
        self.settle_down()

    async def handler(self, job: ActiveJob, begin: Callable[[], None]) -> Any:
        begin()
        ended = self.handlers[job.claim] = self.loop.create_future()
        try:
            return await ended
        finally:
            del self.handlers[job.claim]

    handler.close = lambda: None  # type: ignore[attr-defined]
    handler.can_interrupt = lambda job: True  # type: ignore[attr-defined]

    def add_to_store(self) -> None:
        self.added += 1
        self.unnoticed = True
        self.store.waiting.append(f"job {self.added}")

    def settle_down(self) -> None:
        """Let everything run that can run without time passing."""
        for _ in range(12):
            self.loop.run_until_complete(asyncio.sleep(0))

    # --- what may happen --------------------------------------------------------------------------------------------

    @rule(wakes=st.booleans())
    def a_job_is_added(self, wakes: bool) -> None:
        self.add_to_store()
        if wakes:
            self.the_store_wakes_the_worker()

    @rule()
    def the_store_wakes_the_worker(self) -> None:
        for woken in self.store.waits:
            if not woken.done():
                woken.set_result(None)
                self.unnoticed = False
        self.settle_down()

    @precondition(lambda self: self.store.waiting and self.store.waits and not self.store.waits[0].done())
    @rule(goes_on=st.booleans())
    def a_wait_brings_a_job(self, goes_on: bool) -> None:
        self.store.bring()
        if goes_on:
            self.settle_down()

    @rule(can=st.booleans())
    def passing_on_is_possible(self, can: bool) -> None:
        self.store.can_pass_on = can

    @rule(goes_on=st.booleans())
    def the_worker_is_paused(self, goes_on: bool) -> None:
        self.store.paused = True
        self.engine.pause()
        self.draining.append(self.loop.create_task(self.drain()))
        if goes_on:
            self.settle_down()

    @precondition(lambda self: self.store.waiting and self.store.waits and not self.store.waits[0].done())
    @rule(answer=st.sampled_from(["done", "away"]), can_pass_on=st.booleans(), steps=st.integers(0, 4))
    def a_pause_meets_a_job_that_a_wait_brings(self, answer: str, can_pass_on: bool, steps: int) -> None:
        """Whatever becomes of calls under way: the job runs or goes back before long."""
        self.store.can_pass_on = can_pass_on
        self.store.bring()
        for _ in range(steps):
            self.loop.run_until_complete(asyncio.sleep(0))
        self.the_worker_is_paused(goes_on=True)
        while self.store.calls:
            for call in list(self.store.calls):
                if not call.answer.done():
                    call.answer.set_result(answer)
            self.settle_down()
        self.store.can_pass_on = True
        self.loop.pass_time(40.0)
        assert not self.store.brought

    async def drain(self) -> None:
        await self.engine.drained()
        if self.store.paused:
            assert not self.engine.unsettled()
            assert not self.store.calls
            assert not (self.store.brought and self.outage.connected)

    @rule(goes_on=st.booleans())
    def the_worker_is_resumed(self, goes_on: bool) -> None:
        self.unnoticed &= not self.store.paused  # it looks for jobs then
        self.store.paused = False
        self.engine.resume()
        if goes_on:
            self.settle_down()

    @precondition(lambda self: self.handlers)
    @rule(which=st.integers(0, 20), retry=st.booleans())
    def a_job_is_cancelled(self, which: int, retry: bool) -> None:
        claim = list(self.handlers)[which % len(self.handlers)]
        self.engine.running.cancel(claim.job.id, "no longer wanted", retry=retry)
        self.settle_down()

    @precondition(lambda self: self.store.calls)
    @rule(which=st.integers(0, 1))
    def a_call_reaches_the_store(self, which: int) -> None:
        self.store.reach(self.store.calls[which % len(self.store.calls)])

    @precondition(lambda self: self.store.calls and self.store.waits)
    @rule()
    def a_wake_up_overtakes_an_answer(self) -> None:
        """A job is added after a claim has looked for jobs, and its wake-up arrives before the claim's answer."""
        for call in self.store.calls:
            self.store.reach(call)
        self.a_job_is_added(wakes=True)
        self.all_calls_are_answered()

    @rule()
    def all_calls_are_answered(self) -> None:
        """Then a job that the worker was woken for runs, without time passing, if a slot is free for it."""
        self.settle_down()
        while self.store.calls:
            for call in list(self.store.calls):
                if not call.answer.done():
                    call.answer.set_result("done")
            self.settle_down()
        free = len(self.engine.running) < self.concurrency
        pause = vars(self.outage)["_pause"]
        waits_out_an_outage = not self.outage.connected or (pause is not None and not pause.done())
        if not (waits_out_an_outage or self.stopped or self.unnoticed or self.store.paused):
            assert not (self.store.waiting and free), vars(self.store)
        if self.store.paused and not (waits_out_an_outage or self.stopped):
            assert not self.store.brought
            assert self.handlers or all(one.done() for one in self.draining)

    @precondition(lambda self: self.store.calls)
    @rule(which=st.integers(0, 1), how=st.sampled_from(ANSWERS))
    def a_call_is_answered(self, which: int, how: str) -> None:
        call = self.store.calls[which % len(self.store.calls)]
        if how == "silent":
            self.loop.pass_time(CALL_TIMEOUT + 1)
        elif not call.answer.done():
            call.answer.set_result(how)
        self.settle_down()

    @precondition(lambda self: self.handlers)
    @rule(which=st.integers(0, 20), how=st.sampled_from(["returns", "raises", "snoozes"]))
    def a_handler_ends(self, which: int, how: str) -> None:
        ended = list(self.handlers.values())[which % len(self.handlers)]
        ends: dict[str, Callable[[], None]] = {
            "returns": lambda: ended.set_result(1),
            "raises": lambda: ended.set_exception(ValueError("no")),
            "snoozes": lambda: ended.set_exception(Snooze(1)),
        }
        self.unnoticed |= how == "snoozes"
        if not ended.done():
            ends[how]()
        self.settle_down()

    @precondition(lambda self: self.handlers)
    @rule(which=st.integers(0, 20))
    def a_lease_is_lost(self, which: int) -> None:
        claim = list(self.handlers)[which % len(self.handlers)]
        if self.store.active.get(claim.job.id) == claim.token:
            del self.store.active[claim.job.id]
            self.store.waiting.append(claim.job.id)
            self.unnoticed = True
        self.engine.running.lose(claim)
        self.settle_down()

    @rule(seconds=st.sampled_from([0.1, 6.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.loop.pass_time(seconds)

    @precondition(lambda self: self.store.paused and not self.stopped)
    @rule()
    def a_paused_worker_rests(self) -> None:
        self.store.can_pass_on = True
        self.loop.pass_time(CALL_TIMEOUT + 40.0)
        self.all_calls_are_answered()
        passed_on, calls = self.store.passed_on, self.stats.calls
        self.loop.pass_time(600.0)
        assert (self.store.passed_on, self.stats.calls) == (passed_on, calls)

    @rule()
    def dead_workers_jobs_are_recovered(self) -> None:
        held = {claim.token for claim in (*self.keeper.held, *self.store.brought)}
        for job, token in list(self.store.active.items()):
            if token not in held:
                del self.store.active[job]
                self.store.waiting.append(job)
                self.unnoticed = True

    @rule(now=st.booleans())
    def the_worker_is_stopped(self, now: bool) -> None:
        self.stopped = True
        if now:
            self.engine.hand_back()
        else:
            self.engine.finish()
        self.settle_down()

    # --- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def no_more_handlers_run_than_allowed(self) -> None:
        if hasattr(self, "engine"):
            assert len(self.handlers) <= len(self.engine.running) <= self.concurrency

    @invariant()
    def no_job_is_lost_or_doubled(self) -> None:
        if hasattr(self, "engine"):
            everywhere = [*self.store.waiting, *self.store.active, *self.store.finished]
            assert sorted(everywhere) == sorted(f"job {n}" for n in range(1, self.added + 1))

    @invariant()
    def a_running_job_is_held(self) -> None:
        if hasattr(self, "engine"):
            assert set(self.handlers) <= self.keeper.held

    @invariant()
    def a_paused_worker_neither_claims_nor_waits(self) -> None:
        if hasattr(self, "engine") and self.store.paused:
            assert not self.store.claimed_while_paused
            self.settle_down()
            assert not self.store.waits

    @invariant()
    def a_pause_has_no_error(self) -> None:
        for one in getattr(self, "draining", []):
            if one.done():
                one.result()

    @invariant()
    def the_worker_lives_until_it_is_stopped(self) -> None:
        if hasattr(self, "engine"):
            assert self.stopped or not self.run.done(), self.run

    def teardown(self) -> None:
        """From any state: once the store answers and handlers end, everything is done, and the worker can stop."""
        if not hasattr(self, "engine"):
            return
        try:
            self.store.can_pass_on = True
            if not self.stopped:
                self.the_worker_is_resumed(goes_on=True)
                self._until(lambda: len(self.store.finished) == self.added, "all jobs are finished")
            self.engine.finish()
            self._until(self.run.done, "the worker has stopped")
            self.run.result()
            assert not self.keeper.held
            assert not self.engine.unsettled()
        finally:
            for patch in self.patches:
                patch.stop()
            ends = [self.run, *self.draining]
            for end in ends:
                end.cancel()
            self.loop.run_until_complete(asyncio.gather(*ends, return_exceptions=True))
            self.loop.close()
            asyncio.set_event_loop(None)

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        for _ in range(400):
            if reached():
                return
            self.dead_workers_jobs_are_recovered()
            for call in list(self.store.calls):
                if not call.answer.done():
                    call.answer.set_result("done")
            for ended in list(self.handlers.values()):
                if not ended.done():
                    ended.set_result(1)
            self.settle_down()
            self.loop.pass_time(3.0)
        raise AssertionError(f"never: {what}; {vars(self.store)}")


TestEngineStates = pytest.mark.slow(EngineStates.TestCase)
TestEngineStates.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
