"""Waits for wakeups of the store, for one engine.

A wait begins when there is a free slot and nothing to claim. It is ended when its wakeup could not be served: because
the worker is paused or finishing, or because other queues of the worker use all slots. The consumer may then have taken
a wakeup, and a job with it, that no claim of this worker will ask for. So the listener asks it to pass these on to
other workers.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from jobwire.boundary import Consumer
from jobwire.deadline import deadline
from jobwire.worker.outage import Outage

_LONGEST_WAIT = 5.0
_GRACE = 5.0


class Claimer(Protocol):
    """The engine that a listener waits for."""

    @property
    def claiming(self) -> bool:
        """False once the engine is finishing."""
        ...

    def needs_wakeup(self) -> bool:
        """Returns True if there is nothing to claim, and a slot for a job that comes."""
        ...

    def has_free_slot(self) -> bool: ...

    def look(self) -> None:
        """Claims in one of the engine's lanes, because a job may be ready."""
        ...

    async def look_now(self) -> None:
        """Claims before it returns."""
        ...

    def advanced(self) -> None:
        """Called when the listener rests, and when passing on has failed."""
        ...


class Listener:
    """Waits at one consumer."""

    def __init__(self, consumer: Consumer, engine: Claimer, outage: Outage, call_timeout: float) -> None:
        self._consumer = consumer
        self._engine = engine
        self._outage = outage
        self._call_timeout = call_timeout
        self._check = asyncio.Event()
        self._next_in: float | None = None
        self._waits_until = 0.0
        self._due: asyncio.TimerHandle | None = None
        self._waiting: deadline | None = None
        """The deadline of a wait that is under way."""
        self._must_pass_on = False
        """True if the consumer may hold a wakeup or a job that this worker does not ask for."""
        self.rests = False

    @property
    def idle(self) -> bool:
        """True if it neither waits nor has anything to pass on."""
        return self.rests and not self._must_pass_on

    async def run(self) -> None:
        """Waits for a wakeup whenever the engine needs one, until the engine is finishing."""
        while self._engine.claiming:
            self._check.clear()
            if self._must_pass_on:
                await self._pass_on()
            elif self._engine.needs_wakeup():
                await self._wait()
            else:
                await self._rest()

    def check(self) -> None:
        """Looks again whether the engine needs a wakeup."""
        self._check.set()

    def expect(self, next_in: float | None) -> None:
        """Has the next wait end when a job is due, in so many seconds. If a wait is under way that would end later, the
        engine looks for the job at that time."""
        self._next_in = next_in
        self._check.set()
        if next_in is None:
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + next_in
        if due >= self._waits_until or (self._due is not None and self._due.when() <= due):
            return
        if self._due is not None:
            self._due.cancel()
        self._due = loop.call_at(due, self._come_due)

    @property
    def expects_now(self) -> bool:
        """True if the store has more jobs than the last claim could read."""
        return self._next_in is not None and self._next_in <= 0

    def _come_due(self) -> None:
        self._due = None
        self._engine.look()

    # --- waiting ----------------------------------------------------------------------------------------------------

    async def _rest(self) -> None:
        self.rests = True
        self._engine.advanced()
        await self._check.wait()
        self.rests = False

    async def _wait(self) -> None:
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
                if not self._engine.has_free_slot():
                    await self._consumer.pass_on()
        except Exception as error:  # the worker tries again after any error
            if self._engine.claiming and not limit.ended:
                await self._outage.endure(error, self._consumer.reset)
        self._waits_until = 0.0
        await self._engine.look_now()

    def end_wait(self) -> bool:
        """Ends a wait: a job that it brings from now on could not be run. Returns False if there is none."""
        if self._waiting is None:
            return False
        self._waiting.end()
        return True

    # --- passing on -------------------------------------------------------------------------------------------------

    def pass_on(self) -> None:
        """Passes on to other workers, soon, what the consumer holds for this one."""
        self._must_pass_on = True
        self._check.set()

    def keep(self) -> None:
        """Passes nothing on: the engine claims again."""
        self._must_pass_on = False

    async def _pass_on(self) -> None:
        """Passes on what this worker was woken for. This is repeated until it succeeds, since the lease of a job that
        the consumer holds is not extended."""
        self._must_pass_on = False
        try:
            async with deadline(self._call_timeout):
                await self._consumer.pass_on()
        except Exception as error:  # as in a wait
            self._must_pass_on = not self._engine.has_free_slot()
            self._engine.advanced()
            if self._engine.claiming:
                await self._outage.endure(error, self._consumer.reset)
        else:
            self._outage.over()
