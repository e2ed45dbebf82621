"""The scheduler: one worker of a namespace leads, and does the work that the spec assigns to "the scheduler".

The leader has `scheduler:lock`, which lasts 30 s. It renews the lock every 10 s, and steps down by itself if it could
not for 25 s. It may be suspended at any time and continue when another one leads. So every script that acts for it
compares the lock first, in the same atomic call: a script that a former leader sends does nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.bridgemq.upkeep.cron import Crontab
from jobwire.backends.bridgemq.upkeep.reindex import Reindex
from jobwire.backends.redisio.scripts import Argument, Scripts
from jobwire.boundary import DutyReport
from jobwire.counted import counted

_log = logging.getLogger("jobwire.bridgemq")

TICK = 1.0
LEASE = 30
RENEW_EVERY = 10.0
ASK_EVERY = 5.0
STEP_DOWN_AFTER = 25.0
ORPHANS_EVERY = 5.0
TIDY_EVERY = 60.0
FORGET_WORKERS_AFTER = 300.0
_BATCH = 100
_REINDEX_STEPS = 20
_MOST_ASIDE = 200
"""The length of the list in which ids and reasons wait for the leader, as `dead_letter.lua` keeps it."""


class Deposed(Exception):
    """Another scheduler has the lock, and does the work now."""


class Scheduler:
    """A candidate for the leader of its namespace. Does the leader's work if it is elected."""

    def __init__(self, scripts: Scripts, keys: Keys, scheduler_id: str) -> None:
        self._scripts = scripts
        self._keys = keys
        self.id = scheduler_id
        self._crontab = Crontab(scripts, keys)
        self._reindex = Reindex(scripts, keys)
        self.leads = False
        self._asked_at = self._renewed_at = self._orphans_at = self._tidied_at = float("-inf")

    async def tick(self) -> DutyReport:
        """Does the work of one second if this scheduler leads."""
        if not await self.elect():
            return DutyReport()
        try:
            await self.move_due()
            await self.fire()
            await self.reindex()
            recovered: list[str] = await self._every("_orphans_at", ORPHANS_EVERY, self.orphans) or []
            await self._every("_tidied_at", TIDY_EVERY, self.tidy)
        except Deposed:
            self.leads = False
            return DutyReport(note="another scheduler leads now")
        return DutyReport(recovered)

    async def elect(self) -> bool:
        """Tries to become or stay the leader. Returns True if it is. Asks the store only as often as needed."""
        now = time.monotonic()
        if self.leads and now - self._renewed_at > STEP_DOWN_AFTER:
            self.leads = False
        due = now - self._renewed_at >= RENEW_EVERY if self.leads else now - self._asked_at >= ASK_EVERY
        if due:
            self._asked_at = now
            self.leads = bool(await self._scripts.run("elect", [self._keys.base], [self.id, LEASE]))
            if self.leads:
                self._renewed_at = now
        return self.leads

    async def step_down(self) -> None:
        """Gives up the lock, so that another scheduler leads at once and not only after the lease."""
        if self.leads:
            self.leads = False
            await self._scripts.run("elect", [self._keys.base], [self.id, 0])

    async def move_due(self) -> int:
        """Makes delayed jobs ready that are due. Returns their number."""
        total = 0
        while True:
            moved, *aside = await self._act("lead_delayed", [_BATCH])
            if moved < 0:
                raise Deposed
            if aside:
                number = f"{len(aside) // 2}{' or more' if len(aside) >= _MOST_ASIDE else ''}"
                _log.error("moved %s jobs that can't be run to the dead letter: %s", number, _shown(aside))
            total += moved
            if moved < _BATCH:
                return total

    async def fire(self) -> list[int]:
        """Pushes due cron jobs. Returns per job 1 pushed, 0 skipped, 2 not due any more."""
        ticks = await self._crontab.due()
        if not ticks:
            return []
        args = [part for tick in ticks for part in tick.arguments()]
        answers: list[int] = await self._act("lead_cron", args)
        if answers == [-1]:
            raise Deposed
        return answers

    async def reindex(self) -> None:
        """Updates the index after changes by peers. Needs no lock: any worker may do it."""
        await self._reindex.run(_REINDEX_STEPS)

    async def orphans(self) -> list[str]:
        ids: list[Any] = await self._act("lead_orphans", [round(ORPHANS_EVERY * 1000)])
        if ids == [-1]:
            raise Deposed
        return [job_id.decode(errors="replace") for job_id in ids]

    async def tidy(self) -> None:
        done: list[int] = await self._act("lead_tidy", [round(FORGET_WORKERS_AFTER * 1000)])
        if done == [-1]:
            raise Deposed
        counters, workers, _ = done
        if counters or workers:
            _log.info("corrected %s, removed %s", counted(counters, "counter"), counted(workers, "dead worker"))

    async def _act(self, script: str, args: list[Argument]) -> Any:
        return await self._scripts.run(script, [self._keys.base], [self.id, *args])

    async def _every(self, clock: str, every: float, work: Callable[[], Awaitable[Any]]) -> Any:
        now = time.monotonic()
        if now - getattr(self, clock) < every:
            return None
        setattr(self, clock, now)
        return await work()


def _shown(aside: list[bytes], most: int = 5) -> str:
    """Returns ids and reasons for the log. An id that is not valid text is shown by its bytes."""
    pairs = list(zip(aside[: 2 * most : 2], aside[1 : 2 * most : 2], strict=True))
    texts = [f"{job_id.decode(errors='backslashreplace')} ({why.decode(errors='replace')})" for job_id, why in pairs]
    return ", ".join(texts) + (", …" if len(aside) > 2 * most else "")
