"""The engines of one worker, one for each of its queues, from the start of `run` to its end.

They work side by side and end together: if one fails, so does the worker. They share the worker's slots and its lease
keeper.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from jobwire.boundary import Backend, Claim, Consumer
from jobwire.duties import perform
from jobwire.journal import Journal
from jobwire.worker.engine import Engine
from jobwire.worker.handlers import Runner
from jobwire.worker.keeper import HeldLeases, LeaseKeeper
from jobwire.worker.observers import Observers
from jobwire.worker.outage import Outage
from jobwire.worker.queue_handler import QueuePlan
from jobwire.worker.slots import Slots
from jobwire.worker.stats import Stats

_LAST_STEPS = 3.5
"""Seconds that the other engines have to release their jobs when one has failed, and then to end."""


class Engines:
    """All engines of one worker."""

    def __init__(
        self,
        backend: Backend,
        plans: Mapping[str, QueuePlan],
        *,
        stats: Mapping[str, Stats],
        journals: Mapping[str, Journal],
        observers: Observers,
        concurrency: int,
        call_timeout: float,
        max_reconnects: int,
        paused: Collection[str],
    ) -> None:
        self._stats = stats
        self._journals = journals
        self._call_timeout = call_timeout
        self._loop = asyncio.get_running_loop()
        self.consumers: dict[str, Consumer] = {}
        self.runners: dict[str, Runner] = {}
        self._engines: dict[str, Engine] = {}
        slots = Slots(concurrency)
        held: dict[str, HeldLeases] = {}
        for queue, plan in plans.items():
            self.consumers[queue] = backend.consumer(plan.settings)
            self.runners[queue] = plan.make_runner()
            held[queue] = HeldLeases(plan.settings, partial(self._lose, queue), stats[queue], journals[queue])
            self._engines[queue] = Engine(
                backend=backend,
                consumer=self.consumers[queue],
                runner=self.runners[queue],
                leases=held[queue],
                outage=Outage(journals[queue], stats[queue], max_reconnects),
                stats=stats[queue],
                journal=journals[queue],
                observers=observers,
                slots=slots,
                concurrency=plan.concurrency,
                timeout=plan.settings.timeout,
                call_timeout=call_timeout,
                paused=queue in paused,
            )
        settings = next(iter(plans.values())).settings
        self.keeper = LeaseKeeper(backend, list(held.values()), settings.lease, settings.worker_id)

    @property
    def busy(self) -> int:
        return sum(len(engine.running) for engine in self._engines.values())

    @property
    def connected(self) -> bool:
        return all(engine.outage.connected for engine in self._engines.values())

    def busy_on(self, queue: str) -> int:
        return len(self._engines[queue].running)

    def claim_of(self, task: asyncio.Task[Any]) -> Claim | None:
        """Returns the claim whose handler runs in the task. May be called from any thread."""
        return next((claim for one in self._engines.values() if (claim := one.running.claim_of(task))), None)

    def unsettled(self) -> list[str]:
        """Returns the ids of jobs whose outcome the store has not acknowledged."""
        return [job for engine in self._engines.values() for job in engine.unsettled()]

    # --- life -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Works until finished. Raises the error of the first engine that fails. The others release their jobs then."""
        parts = {asyncio.create_task(self._work(queue)) for queue in self._engines}
        watch = asyncio.create_task(self.keeper.watch())
        working = set(parts)
        try:
            while working:
                done, _ = await asyncio.wait({*working, watch}, return_when=asyncio.FIRST_COMPLETED)
                working -= done
                for part in done:
                    part.result()
        except Exception:
            self.hand_back()
            if working:
                await asyncio.wait(working, timeout=_LAST_STEPS)
            raise
        finally:
            self.finish()
            for task in (*parts, watch):
                task.cancel()
            await asyncio.wait((*parts, watch), timeout=_LAST_STEPS)

    async def _work(self, queue: str) -> None:
        stats, journal = self._stats[queue], self._journals[queue]
        duties = self.consumers[queue].duties()
        await self._engines[queue].run(
            [perform(duty, journal, self._call_timeout, stats.count_duty) for duty in duties],
        )

    async def idle(self) -> None:
        """Returns when no job runs and a claim from every queue, made after the last job was settled, found none."""
        while True:
            await self._all_quiet()
            claimed = self._claimed()
            for engine in self._engines.values():
                engine.look()
            await self._all_quiet()
            if self._claimed() == claimed:
                return

    async def _all_quiet(self) -> None:
        """Returns when all engines are quiet at the same moment. One that was quiet may have got a job from another."""
        engines = self._engines.values()
        while not all(engine.is_quiet for engine in engines):
            await asyncio.gather(*(engine.quiet() for engine in engines))

    def _claimed(self) -> int:
        return sum(stats.claimed for stats in self._stats.values())

    def finish(self) -> None:
        """Stops claiming. `run` returns when the running jobs have been settled."""
        for engine in self._engines.values():
            engine.finish()

    def hand_back(self) -> None:
        """Stops the running handlers. Their jobs are released."""
        for engine in self._engines.values():
            engine.hand_back()

    async def leave(self, within: float) -> None:
        """Stops waiting for handlers after this time."""
        await asyncio.gather(*(engine.running.leave(within) for engine in self._engines.values()))

    # --- while they run ---------------------------------------------------------------------------------------------

    def pause(self, queues: Collection[str]) -> None:
        for queue in queues:
            self._engines[queue].pause()

    def resume(self, queues: Collection[str]) -> None:
        for queue in queues:
            self._engines[queue].resume()

    async def drained(self, queues: Collection[str]) -> None:
        """Returns when each of these engines has settled its jobs or was resumed."""
        await asyncio.gather(*(self._engines[queue].drained() for queue in queues))

    def cancel(self, queues: Collection[str], job_id: str, reason: str, *, retry: bool) -> bool:
        found = [self._engines[queue].running.cancel(job_id, reason, retry=retry) for queue in queues]
        return any(found)

    def _lose(self, queue: str, claim: Claim) -> None:
        """Called in the keeper's thread."""
        with contextlib.suppress(RuntimeError):  # the event loop has ended, and all of its handlers with it
            self._loop.call_soon_threadsafe(self._engines[queue].running.lose, claim)
