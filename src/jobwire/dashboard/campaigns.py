"""The campaigns of one database: their last figures, and a task that looks at them again and again.

A look reads the campaigns that have not ended, the newest of the others, and the channels in trouble, each with a
bound. Rates are differences between looks, as in `jobwire campaign watch`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jobwire.campaigns import Campaign, CampaignService, ChannelHealth, Meter, NotInstalled, Speed
from jobwire.campaigns.database import refusals
from jobwire.dashboard.series import Series
from jobwire.errors import InvalidOption, JobwireError, StoreUnavailable
from jobwire.model import State
from jobwire.redact import redact, redact_url

T = TypeVar("T")
_log = logging.getLogger("jobwire.dashboard")

MOST_UNFINISHED, MOST_ENDED = 100, 25
"""Campaigns of a look."""
_WATCHED_EVERY, _UNWATCHED_EVERY, _ABSENT_EVERY = 2.0, 15.0, 60.0
_CONNECTIONS = 3
_SHARE = 9
"""A look that took a second is followed by a break of that many."""
_ASK_AGAIN = 3.0
"""Seconds between two small questions to a database that does not answer."""

_WELL = ChannelHealth(0, 0, ())


@dataclass(frozen=True, slots=True)
class CampaignsLook:
    """The result of one look at a database."""

    at: float = 0.0
    """`time.time()` of the last look that succeeded, or 0 before there was one."""
    campaigns: Sequence[Campaign] = ()
    """Those that have not ended, then the newest of the others."""
    speeds: Mapping[str, Speed] = field(default_factory=dict[str, Speed])
    """The speed of each campaign that runs, by id."""
    channels: ChannelHealth = _WELL
    more: bool = False
    """True if there are campaigns that were not read."""
    trouble: str | None = None
    """The reason why the last look failed."""


def service_of(where: str | CampaignService, queue_schema: str | None = None) -> CampaignService:
    """Returns the campaigns at a URL. The schema of the queues is that of the given one, if there is one."""
    if isinstance(where, CampaignService):
        return where
    given: Any = where
    if not isinstance(given, str):
        raise InvalidOption("stores", type(given).__name__, "must be URLs, connections or a CampaignService")
    return CampaignService(where, connections=_CONNECTIONS, **({"queue_schema": queue_schema} if queue_schema else {}))


class CampaignsDatabase:
    """A database of campaigns that the dashboard shows under a name.

    An `optional` one is that of a store of queues: it is shown only if it has the tables of campaigns.
    """

    def __init__(self, name: str, service: CampaignService, *, timeout: float, optional: bool, owned: bool) -> None:
        self.name = name
        self.service = service
        self.look = CampaignsLook()
        self.series: dict[str, Series] = {}
        self.found = not optional
        """False until the tables of an optional database were found."""
        self._optional = optional
        self._owned = owned
        self._timeout = timeout
        self._meters: dict[str, Meter] = {}
        self._watchers = 0
        self._stack = AsyncExitStack()
        self._wake = asyncio.Event()
        self._looked = asyncio.Event()
        self._changed = asyncio.Event()
        self._outdated = False
        self._silent = False
        self._task: asyncio.Task[None] | None = None

    @property
    def where(self) -> str:
        """The URL, without passwords."""
        return redact_url(self.service.settings.url)

    # --- looking ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._wake, self._looked, self._changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
            self._task = asyncio.create_task(self._run(), name=f"jobwire dashboard campaigns {self.name}")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        with contextlib.suppress(JobwireError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                await self._stack.aclose()

    def watch(self) -> None:
        """Counts an open page, for which looks follow one another more quickly."""
        self._watchers += 1
        self._wake.set()

    def unwatch(self) -> None:
        self._watchers -= 1

    async def next_look(self, within: float) -> None:
        """Returns after the next look, or after that many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._looked.wait()

    async def fresh(self) -> CampaignsLook:
        """Returns the last figures. Waits a moment for new ones if there are none, or if something was changed."""
        old = time.time() - self.look.at > _WATCHED_EVERY
        if old:
            self._wake.set()
        if self.found and (self._outdated or (old and self.look.trouble is None)):
            self._outdated = False
            looked = self._looked
            self._wake.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(1.0, self._timeout)):
                    await looked.wait()
        return self.look

    def outdate(self) -> None:
        """Makes the next page wait for a new look, after something was changed. It begins at once, whatever the break
        after the last one is."""
        self._outdated = True
        self._changed.set()

    @property
    def age(self) -> float:
        """Seconds since the last answer."""
        return time.time() - self.look.at

    @property
    def stale_for(self) -> float | None:
        """Seconds since the last answer, if the last look failed."""
        return time.time() - self.look.at if self.look.trouble is not None else None

    async def _run(self) -> None:
        if self._owned:
            await self._stack.enter_async_context(self.service)
        while True:
            self._changed.clear()
            began = time.monotonic()
            await self._attempt()
            took = time.monotonic() - began
            self._looked.set()
            self._looked = asyncio.Event()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ASK_AGAIN if self._silent else min(took * _SHARE, 60)):
                    await self._changed.wait()
            if self._changed.is_set():
                continue
            every = _WATCHED_EVERY if self._watchers else _UNWATCHED_EVERY
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every if self.found else _ABSENT_EVERY):
                    await (self._wake if self.found else asyncio.Event()).wait()

    async def _attempt(self) -> None:
        self._silent = True
        try:
            await self.ask(self.service.check)
            self._silent, self.found = False, True
            await self.ask(self._look)
        except (JobwireError, OSError) as error:
            if self._optional and not self.look.at:
                # Most stores of queues have no campaigns. An older version of the tables is worth a sentence.
                self.found = isinstance(error, NotInstalled) and error.found > 0
            self._failed(error)
        except Exception as error:  # a look that fails in an unknown way must not be the last one
            _log.exception("looking at the campaigns of %r failed; the next look follows", self.name)
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        before = self.look
        reason = redact(str(error)) or "it did not answer"
        self.look = CampaignsLook(before.at, before.campaigns, {}, before.channels, before.more, reason)

    async def _look(self) -> None:
        unfinished = await self.service.newest(unfinished=True, limit=MOST_UNFINISHED)
        newest = await self.service.newest(limit=MOST_ENDED + len(unfinished) + 1)
        channels = await self.service.channel_health()
        known = {campaign.id for campaign in unfinished}
        ended = [campaign for campaign in newest if campaign.id not in known]
        shown = [*unfinished, *ended[:MOST_ENDED]]
        more = len(ended) > MOST_ENDED or len(unfinished) == MOST_UNFINISHED
        self.look = CampaignsLook(time.time(), shown, self._speeds(shown), channels, more)

    def _speeds(self, shown: Sequence[Campaign]) -> Mapping[str, Speed]:
        now = time.time()
        for gone in self.series.keys() - {campaign.id for campaign in shown}:
            del self.series[gone], self._meters[gone]
        speeds: dict[str, Speed] = {}
        for campaign in shown:
            counts = {State.COMPLETED: campaign.sent, State.FAILED: campaign.failed}
            self.series.setdefault(campaign.id, Series()).add(now, counts)
            speeds[campaign.id] = self._meters.setdefault(campaign.id, Meter()).see(campaign, now)
        return speeds

    # --- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """Returns the answer of the database. Raises StoreUnavailable if there is none in time, and StoreRefused."""
        try:
            async with asyncio.timeout(self._timeout):
                with refusals():
                    return await question()
        except TimeoutError:
            raise StoreUnavailable(f"the database did not answer within {self._timeout:g} s") from None
