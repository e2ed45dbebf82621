"""Two engines that share the slots of one worker, against scripted stores, in every order of events that hypothesis
finds: the slots hold, no job is lost, and no queue starves. Time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobwire.backends.memory.rules import CAPABILITIES
from jobwire.boundary import Claim
from jobwire.journal import Journal
from jobwire.worker import engine, outage, running
from jobwire.worker.active import ActiveJob
from jobwire.worker.engine import Engine
from jobwire.worker.observers import Observers
from jobwire.worker.outage import Outage
from jobwire.worker.slots import Slots
from jobwire.worker.stats import Stats
from worker.test_engine_states import CALL_TIMEOUT, Keeper, Store
from worker.virtual_time import VirtualTimeLoop

QUEUES = st.sampled_from([0, 1])


class Side:
    """One queue: its store, its engine, and the handlers that run."""

    def __init__(self, loop: VirtualTimeLoop, slots: Slots, limit: int, journal: Journal) -> None:
        self.loop = loop
        self.limit = limit
        self.store, self.keeper = Store(), Keeper()
        self.handlers: dict[Claim, asyncio.Future[Any]] = {}
        self.added = 0
        self.unnoticed = False
        stats = Stats()
        self.outage = Outage(journal, stats, 0)
        backend: Any = SimpleNamespace(capabilities=CAPABILITIES)
        runner: Any = self.run
        self.engine = Engine(
            backend=backend,
            consumer=self.store,
            runner=runner,
            leases=self.keeper,  # type: ignore[arg-type]
            outage=self.outage,
            stats=stats,
            journal=journal,
            observers=Observers((), journal),
            slots=slots,
            concurrency=limit,
            timeout=None,
            call_timeout=CALL_TIMEOUT,
        )

    async def run(self, job: ActiveJob, begin: Callable[[], None]) -> None:
        begin()
        ended = self.handlers[job.claim] = self.loop.create_future()
        try:
            await ended
        finally:
            del self.handlers[job.claim]

    def add(self) -> None:
        self.added += 1
        self.unnoticed = True
        self.store.waiting.append(f"job {self.added}")

    def wake(self) -> None:
        for woken in self.store.waits:
            if not woken.done():
                woken.set_result(None)
                self.unnoticed = False

    @property
    def is_out(self) -> bool:
        pause = vars(self.outage)["_pause"]
        return not self.outage.connected or (pause is not None and not pause.done())


class SharedSlots(RuleBasedStateMachine):
    @initialize(total=st.integers(1, 8), limits=st.tuples(st.integers(1, 8), st.integers(1, 8)))
    def start(self, total: int, limits: tuple[int, int]) -> None:
        self.loop = VirtualTimeLoop()
        self.total = total
        clock = SimpleNamespace(monotonic=self.loop.time)
        journal = Journal("w", "q")
        self.patches = [mock.patch.object(journal.logger, "disabled", True)]
        self.patches += [mock.patch.object(module, "time", clock) for module in (engine, outage, running)]
        for patch in self.patches:
            patch.start()
        slots = Slots(total)
        self.sides = [Side(self.loop, slots, min(limit, total), journal) for limit in limits]
        asyncio.set_event_loop(self.loop)
        self.runs = [self.loop.create_task(side.engine.run()) for side in self.sides]
        self.settle_down()

    def settle_down(self) -> None:
        for _ in range(20):
            self.loop.run_until_complete(asyncio.sleep(0))

    # --- what may happen --------------------------------------------------------------------------------------------

    @rule(which=QUEUES, jobs=st.integers(1, 10), wakes=st.booleans())
    def jobs_are_added(self, which: int, jobs: int, wakes: bool) -> None:
        for _ in range(jobs):
            self.sides[which].add()
        if wakes:
            self.a_queue_is_woken(which)

    @rule(which=QUEUES)
    def a_queue_is_woken(self, which: int) -> None:
        self.sides[which].wake()
        self.settle_down()

    @rule(which=QUEUES)
    def a_wait_brings_a_job(self, which: int) -> None:
        store = self.sides[which].store
        if store.waiting and store.waits and not store.waits[0].done():
            store.bring()
            self.settle_down()

    @rule(which=QUEUES, end=st.integers(1, 8))
    def handlers_end(self, which: int, end: int) -> None:
        for ended in list(self.sides[which].handlers.values())[:end]:
            if not ended.done():
                ended.set_result(None)
        self.settle_down()

    @rule(which=QUEUES, how=st.sampled_from(["done", "away", "refused", "silent"]))
    def a_call_is_answered(self, which: int, how: str) -> None:
        calls = self.sides[which].store.calls
        if how == "silent":
            self.loop.pass_time(CALL_TIMEOUT + 1)
        elif calls and not calls[0].answer.done():
            calls[0].answer.set_result(how)
        self.settle_down()

    @rule()
    def all_calls_are_answered(self) -> None:
        """Then every job that a queue was woken for runs, without time passing, if a slot is free for it."""
        self.settle_down()
        while any(side.store.calls for side in self.sides):
            for side in self.sides:
                for call in list(side.store.calls):
                    if not call.answer.done():
                        call.answer.set_result("done")
            self.settle_down()
        used = sum(len(side.engine.running) for side in self.sides)
        for side in self.sides:
            free = used < self.total and len(side.engine.running) < side.limit
            if free and not (side.is_out or side.unnoticed or side.store.paused):
                assert not side.store.waiting, vars(side.store)

    @rule(which=QUEUES)
    def a_queue_is_paused(self, which: int) -> None:
        self.sides[which].store.paused = True
        self.sides[which].engine.pause()
        self.settle_down()

    @rule(which=QUEUES)
    def a_queue_is_resumed(self, which: int) -> None:
        side = self.sides[which]
        side.unnoticed &= not side.store.paused  # it looks for jobs then
        side.store.paused = False
        side.engine.resume()
        self.settle_down()

    @rule(seconds=st.sampled_from([0.05, 0.2, 6.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.loop.pass_time(seconds)

    @precondition(lambda self: sum(len(side.engine.running) for side in self.sides) == self.total)
    @rule()
    def a_full_worker_leaves_wakeups_to_others(self) -> None:
        """Once no slot was free for a while, and the calls are answered that settle what has ended."""
        self.all_calls_are_answered()
        self.loop.pass_time(0.5)
        if sum(len(side.engine.running) for side in self.sides) == self.total:
            assert not [side.store.waits for side in self.sides if side.store.waits]
            self.loop.pass_time(0.0)
            assert all(side.is_out or not side.store.brought or not side.store.can_pass_on for side in self.sides)

    # --- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def the_slots_hold(self) -> None:
        sides = getattr(self, "sides", [])
        assert sum(side.engine.slots_used for side in sides) <= getattr(self, "total", 0)
        assert all(side.engine.slots_used <= side.limit for side in sides)

    @invariant()
    def no_job_is_lost_or_doubled(self) -> None:
        for side in getattr(self, "sides", []):
            everywhere = [*side.store.waiting, *side.store.active, *side.store.finished]
            assert sorted(everywhere) == sorted(f"job {n}" for n in range(1, side.added + 1))

    @invariant()
    def the_engines_live(self) -> None:
        assert not [run for run in getattr(self, "runs", []) if run.done()]

    def teardown(self) -> None:
        """From any state: once both stores answer and handlers end, every job is run, and the engines can stop."""
        if hasattr(self, "sides"):
            try:
                self._end()
            finally:
                self._leave()

    def _end(self) -> None:
        for which, side in enumerate(self.sides):
            side.store.can_pass_on = True
            self.a_queue_is_resumed(which)
        for _ in range(200):
            if not any(side.store.waiting or side.store.active for side in self.sides):
                break
            for which in (0, 1):
                self.handlers_end(which, 8)
            self.all_calls_are_answered()
            self.loop.pass_time(6.0)
        else:
            raise AssertionError([vars(side.store) for side in self.sides])
        for side in self.sides:
            side.engine.finish()
        for _ in range(10):
            self.all_calls_are_answered()
            self.loop.pass_time(6.0)
        assert all(run.done() for run in self.runs)
        for run in self.runs:
            run.result()

    def _leave(self) -> None:
        for patch in self.patches:
            patch.stop()
        for run in self.runs:
            run.cancel()
        self.loop.run_until_complete(asyncio.gather(*self.runs, return_exceptions=True))
        self.loop.close()
        asyncio.set_event_loop(None)


SharedSlots.TestCase.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestSharedSlots = pytest.mark.slow(SharedSlots.TestCase)
