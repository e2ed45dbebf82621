"""Claims jobs by hand, for the callers of `Queue.claim`.

Callers that claim at the same time share a look: one call to the store that asks for as many jobs as there are callers.
So ten claims at a time cost one round trip. A caller that gets no job and has time left goes on waiting. One wait for
new jobs serves all callers. Every wakeup, every job that is due and the end of a caller's time cause another look. A
caller that is cancelled gets no job, and one that was claimed for it is released at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.backoff import reconnect_delay
from jobwire.boundary import Backend, Claim, ConsumerSettings, Failed, Outcome, Released, Settled
from jobwire.checks import Seconds, seconds, text
from jobwire.claim_holder import ClaimHolder
from jobwire.claimed import ClaimedJob
from jobwire.deadline import deadline
from jobwire.errors import Closed
from jobwire.journal import new_worker_id

_LONGEST_WAIT = 5.0
_GRACE = 5.0
_SOON = 0.05
"""A store with contention asks to be called again within this many seconds."""
_LOOKS = 3
"""The number of looks at such a store before a caller whose time is over gets None."""
_FIRST_DUTIES = 2.0
"""Seconds that callers wait for the first run of the duties, which may make a job ready in an empty queue."""
_LAST_CALLS = 3.0


@dataclass(slots=True, eq=False)
class _Caller:
    """One call that waits for a job. `until` is the end of its time by the event loop's clock, or None."""

    future: asyncio.Future[ClaimedJob | None]
    until: float | None
    looks: int = 0

    def is_late(self, now: float) -> bool:
        return self.until is not None and self.until <= now + 0.001


class Claimer:
    """Makes all claims by hand of one queue that have the same settings."""

    def __init__(self, backend: Backend, settings: ConsumerSettings) -> None:
        self._holder = ClaimHolder(backend, settings)
        self._callers: list[_Caller] = []
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False
        self._listening: asyncio.Task[None] | None = None
        self._wait: deadline | None = None
        """The deadline of a wait for new jobs that is under way."""
        self._given_up = False
        self._blocked_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def claim(self, timeout: float | None) -> ClaimedJob | None:
        """Returns a job, or None if there is none within that many seconds."""
        self._holder.check_open()
        loop = asyncio.get_running_loop()
        caller = _Caller(loop.create_future(), None if timeout is None else loop.time() + timeout)
        self._callers.append(caller)
        self._look()
        end = loop.call_at(caller.until, self._look) if timeout and caller.until is not None else None
        try:
            return await caller.future
        except asyncio.CancelledError:
            given = caller.future
            if given.done() and not given.cancelled() and given.exception() is None and (job := given.result()):
                self._holder.give_up(job)
            raise
        finally:
            if end is not None:
                end.cancel()
            self._dismiss(caller)

    def _dismiss(self, caller: _Caller) -> None:
        with contextlib.suppress(ValueError):
            self._callers.remove(caller)
        if not self._callers and self._wait is not None:
            self._given_up = True
            self._wait.end()

    def _answer(self, caller: _Caller, job: ClaimedJob | None) -> None:
        caller.future.set_result(job)
        self._dismiss(caller)

    def _refuse(self, callers: Sequence[_Caller], error: Exception) -> None:
        for caller in callers:
            if not caller.future.done():
                caller.future.set_exception(error)
            self._dismiss(caller)

    # --- looking for jobs -------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Asks the store for jobs now. If a call is under way, asks again after it, since it may be too early to see
        them."""
        self._look_again = True
        if self._looking is None and self._callers:
            self._looking = asyncio.create_task(self._look_for_jobs())

    async def _look_for_jobs(self) -> None:
        try:
            while self._look_again and self._callers:
                self._look_again = False
                await self._turn(list(self._callers))
        finally:
            self._looking = None
        if self._callers and self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def _turn(self, callers: list[_Caller]) -> None:
        settled = Settled()
        if self._blocked_for() <= 0:
            try:
                settled = await self._holder.call([], len(callers))
                await self._hand_out(settled.claims)
            except Exception as error:  # any error is raised in the callers
                self._refuse(callers, error)
                await self._holder.reset()
                return
            self._blocked_until = asyncio.get_running_loop().time() + settled.blocked_for
        self._holder.begin_duties()
        left = [caller for caller in callers if not caller.future.done()]
        if left and await self._holder.first_duties(_FIRST_DUTIES):
            self._look_again = True
        if left and not self._look_again:
            self._conclude(left, settled)

    def _conclude(self, left: Sequence[_Caller], settled: Settled) -> None:
        """Ends the calls that got no job and have no time left, and plans the next look for the others."""
        now, again_in = asyncio.get_running_loop().time(), settled.next_in
        if self._blocked_for() > 0:
            again_in = self._blocked_for()
        elif again_in == 0 and settled.claims:
            self._look_again = True  # there are more jobs
            return
        for caller in left:
            caller.looks += 1
            is_contended = again_in is not None and again_in <= _SOON and caller.looks < _LOOKS
            if caller.is_late(now) and not is_contended and not caller.future.done():
                self._answer(caller, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if again_in is not None and self._callers:
            self._timer = asyncio.get_running_loop().call_later(max(again_in, _SOON), self._look)

    def _blocked_for(self) -> float:
        return self._blocked_until - asyncio.get_running_loop().time()

    async def _hand_out(self, claims: Sequence[Claim]) -> None:
        """Gives the claims to the callers. Jobs that must not be run fail, and those whose caller is gone are
        released."""
        outcomes: list[Outcome] = []
        for claim in claims:
            caller = next((one for one in self._callers if not one.future.done()), None)
            if claim.doomed is not None:
                failed = Failed(claim, claim.doomed, final=True)
                self._holder.journal.failed(failed)
                outcomes.append(failed)
                self._look_again = True
            elif caller is None:
                outcomes.append(Released(claim))
            else:
                self._answer(caller, self._holder.hold(claim))
        if outcomes:
            await self._holder.give_back(outcomes)

    # --- waiting for jobs -------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        """Waits for wakeups of the store and looks for jobs, as long as there are callers."""
        failures = 0
        try:
            while self._callers:
                if (blocked := self._blocked_for()) > 0:  # a wait would end at once, since there are jobs
                    await asyncio.sleep(min(blocked, self._patience()))
                    continue
                woken = await self._wait_for_job(self._patience())
                failures = failures + 1 if woken is None else 0
                if woken and not self._callers:
                    with contextlib.suppress(Exception):  # without this, other workers find the job too, only later
                        await self._holder.consumer.pass_on()
                self._look()
                if self._looking is not None:
                    await asyncio.wait([self._looking])
                if failures and self._callers:
                    await asyncio.sleep(reconnect_delay(failures - 1))
        finally:
            self._listening = None

    async def _wait_for_job(self, timeout: float) -> bool | None:
        """Returns True if there may be a job. That is also so if the wait was ended early, since it may have taken a
        wakeup. Returns False after the timeout, and None if the store failed."""
        loop = asyncio.get_running_loop()
        began, self._given_up = loop.time(), False
        try:
            async with deadline(timeout + _GRACE) as self._wait:
                await self._holder.consumer.wait(timeout)
        except Exception as error:
            if self._given_up:
                return True
            reason = str(error) or "no answer in time"
            self._holder.journal.warning("could not wait for jobs (%s); looking for them instead", reason)
            await self._holder.reset()
            return None
        finally:
            self._wait = None
        return loop.time() - began < timeout

    def _patience(self) -> float:
        now = asyncio.get_running_loop().time()
        left = [_LONGEST_WAIT if one.until is None else one.until - now for one in self._callers]
        return min(max(_SOON, *left), _LONGEST_WAIT)

    # --- the end ----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Ends the calls of all callers. Waits for a call to the store that is under way, since it may bring jobs."""
        self._holder.closed = True
        self._refuse(list(self._callers), Closed("the queue was closed while a job was waited for"))
        if self._timer is not None:
            self._timer.cancel()
        tasks = [task for task in (self._looking, self._listening) if task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_LAST_CALLS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=_LAST_CALLS)
        await self._holder.close()


class Claimers:
    """The claimers of one queue: one for each lease, worker id and native options that claims were made with."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._made: list[tuple[tuple[float, str | None, object], Claimer]] = []

    def settings(self, backend: Backend, lease: Seconds, worker_id: str | None, native: object) -> ConsumerSettings:
        """Returns the checked settings of a claim. Does not call the store."""
        given = None if worker_id is None else text("worker_id", worker_id)
        settings = ConsumerSettings(
            queue=self._queue,
            worker_id=given or new_worker_id(),
            lease=seconds("lease", lease, minimum=0.1),
            native=native,
        )
        backend.check_worker(settings)
        return settings

    def get(self, backend: Backend, settings: ConsumerSettings, worker_id: str | None) -> Claimer:
        """Returns the claimer of these settings, which is created at the first claim with them."""
        asked = (settings.lease, worker_id, settings.native)
        for known, claimer in self._made:
            if known == asked:
                return claimer
        claimer = Claimer(backend, settings)
        self._made.append((asked, claimer))
        return claimer

    async def close(self) -> None:
        made, self._made = self._made, []
        await asyncio.gather(*(claimer.close() for _, claimer in made))
