"""One store: its queues, its last figures, and a task that looks at it again and again.

Pages show the last figures and wait for the store only a moment, so a slow store never delays them: figures that are
older than they should be are marked as stale. A look reads a few numbers of each queue. Its share of the time is
bounded: after a look that took a second, the next one begins nine seconds later at the earliest.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from jobwire.boundary import Feature, QueueFigures
from jobwire.connection import Connection
from jobwire.dashboard.at_least import AtLeast
from jobwire.dashboard.closer_look import CloserLook
from jobwire.dashboard.event_tail import EventTail
from jobwire.dashboard.findings import Findings
from jobwire.dashboard.queue_names import QueueNames
from jobwire.dashboard.series import Rates, Series
from jobwire.errors import JobwireError, NotSupported, StoreRefused, StoreUnavailable
from jobwire.model import Schedule
from jobwire.queue import Queue
from jobwire.redact import redact

T = TypeVar("T")
_log = logging.getLogger("jobwire.dashboard")

MOST_QUEUES = 1000
"""Queues of a store that are looked at."""
WATCHED_EVERY, UNWATCHED_EVERY = 2.0, 15.0
"""Seconds between two looks while a page is open, and while none is."""
_SHARE, _LONGEST_REST = 9, 60.0
_FRESH, _OLD = 1.0, 5.0
"""Ages of figures in seconds: from the first on a page asks for a new look, from the second on it waits for one."""
_WHOLE_LOOK = 4
"""A look at all queues may take that many times as long as one answer."""
MOST_COUNTED, _FEWEST_COUNTED = 10_000, 100
"""Jobs of a queue in one state that are counted one by one, in stores that have to do so: if a look takes long, a tenth
of them."""
_LONG_LOOK, _SHORT_LOOK = 2.0, 0.2
_CANCEL_AGAIN = 0.5
_PATIENCE = 0.25
"""Seconds for a question to a store that has not answered the last short one, so that pages with stale figures don't
wait for each of their parts."""
_ASK_AGAIN = 3.0
"""Seconds between two small questions to a store that does not answer."""
MOST_SEARCHED = 5000
"""Jobs that are searched for schedules, in stores that have no list of them."""
_MOST_OPEN = 500


class NoSuchQueue(LookupError):
    """The store has no queue of this name."""


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look at a store."""

    at: float = 0.0
    """`time.time()` of the last look that succeeded, or 0 before there was one."""
    figures: Mapping[str, QueueFigures] = field(default_factory=dict[str, QueueFigures])
    workers: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    left_out: int = 0
    """Queues beyond MOST_QUEUES."""
    searching: bool = False
    """True if there may be more queues: not all of the store has been searched yet."""
    trouble: str | None = None
    """The reason why the last look failed. The figures are then those of the look before."""

    @property
    def seen(self) -> bool:
        """True if the store has answered at least once."""
        return self.at > 0


def _marked(figures: QueueFigures) -> QueueFigures:
    """Returns the figures with counts that are written as incomplete where they are."""
    if not figures.more:
        return figures
    counts = {state: AtLeast(jobs) if state in figures.more else jobs for state, jobs in figures.counts.items()}
    return replace(figures, counts=counts)


class Store:
    """A store that the dashboard shows under a name."""

    def __init__(self, name: str, where: str | Connection, timeout: float) -> None:
        self.name = name
        self.connection = where if isinstance(where, Connection) else Connection(where)
        self._owns = self.connection is not where
        self._timeout = timeout
        self.look = Look()
        self.series: dict[str, Series] = {}
        self.findings = Findings(self.connection)
        self.closer = CloserLook(self.connection)
        self.took = 0.0
        """Seconds that the last look took."""
        self.watchers = 0
        self._names = QueueNames()
        self._most = MOST_COUNTED
        self._since: datetime | None = None
        self._rests_until = 0.0
        self._outdated = False
        self._changed = self._began = 0.0
        self._silent = False
        self._kept: dict[Hashable, tuple[float, Any]] = {}
        self._queues: dict[str, Queue] = {}
        self._tails: dict[str, EventTail] = {}
        self._wake = asyncio.Event()
        self._looked = asyncio.Event()
        self._answers = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def where(self) -> str:
        """The URL, without passwords."""
        return self.connection.address.redacted

    # --- looking ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._task is None or self._task.done():
            self._wake, self._looked, self._answers = asyncio.Event(), asyncio.Event(), asyncio.Event()
            self._task = asyncio.create_task(self._run(), name=f"jobwire dashboard {self.name}")

    async def close(self) -> None:
        while self._task is not None and not self._task.done():
            # Repeated, because wait_for of Python 3.11, which drivers use, loses a cancellation that comes together
            # with its result.
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_CANCEL_AGAIN)
        self._task = None
        self.findings.close()
        for tail in self._tails.values():
            tail.close()
        with contextlib.suppress(JobwireError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                for queue in self._queues.values():
                    await queue.close()
                if self._owns:
                    await self.connection.close()
        self._queues.clear()

    def watch(self) -> None:
        """Counts an open page. Its first look begins now, and not when one without open pages would have."""
        self.watchers += 1
        self._wake.set()

    def unwatch(self) -> None:
        self.watchers -= 1

    async def fresh(self) -> Look:
        """Returns the last figures. Waits a moment for new ones if something was changed, or if these are old and the
        next look is near."""
        age = time.time() - self.look.at
        if age > _FRESH:
            self._wake.set()
        within = 1.0 if self._outdated or not self.look.seen else 0.1
        is_near = self._rests_until - time.monotonic() < within
        if self._outdated or (age > _OLD and is_near):
            self._outdated = False
            self._wake.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(within, self._timeout)):
                    await self._looked.wait()
                    while self._began < self._changed:  # that look had begun before the change
                        await self._looked.wait()
        return self.look

    async def next_look(self, within: float) -> None:
        """Returns after the next look, or after that many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._looked.wait()

    def outdate(self) -> None:
        """Makes the next page wait for a new look, after something was changed. It begins at once, whatever the break
        after the last one is."""
        self._outdated = True
        self._changed = time.monotonic()
        self._answers.set()
        self._kept.clear()

    @property
    def stale_for(self) -> float | None:
        """Seconds since the last answer, if that is longer than it should be."""
        age = time.time() - self.look.at
        return age if self.look.trouble is not None or age > UNWATCHED_EVERY + 2 * self._timeout else None

    @property
    def age(self) -> float:
        """Seconds since the last answer."""
        return time.time() - self.look.at

    @property
    def interval(self) -> float:
        """Seconds between two looks, as things are now."""
        return min(self.took * _SHARE, _LONGEST_REST) + (WATCHED_EVERY if self.watchers else UNWATCHED_EVERY)

    def rates(self, queue: str) -> Rates | None:
        series = self.series.get(queue)
        return None if series is None else series.rates(self.look.at)

    async def _run(self) -> None:
        while True:
            self._answers.clear()
            began = time.monotonic()
            try:
                async with asyncio.timeout(self._timeout * _WHOLE_LOOK):
                    await self._look()
            except (JobwireError, TimeoutError, OSError) as error:
                self._failed(error)
            except Exception as error:  # a look that fails in an unknown way must not be the last one
                _log.exception("looking at store %r failed; the next look follows", self.name)
                self._failed(error)
            self.took = took = time.monotonic() - began
            self._adapt(took)
            if self.look.trouble is None:
                took += await self._look_closer()
            self._began = began
            self._looked.set()
            self._looked = asyncio.Event()
            if self.watchers:
                self.findings.refresh()
            self._wake.clear()
            rest = min(took * _SHARE, _LONGEST_REST)
            self._rests_until = time.monotonic() + rest
            await self._rest(rest)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(
                    0 if self._answers.is_set() else WATCHED_EVERY if self.watchers else UNWATCHED_EVERY
                ):
                    await self._wake.wait()

    async def _rest(self, seconds: float) -> None:
        """Waits for the end of the break after a look, or until something was changed. If the store is silent, it is
        asked something small again and again, and looked at as soon as it answers. One that answers and is only too
        slow for a look has its break."""
        until = time.monotonic() + seconds
        is_silent = self.look.trouble is not None and not await self._replies()
        while not self._answers.is_set() and (left := until - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, _ASK_AGAIN) if is_silent else left):
                    await self._answers.wait()
            if is_silent and await self._replies():
                self._answers.set()

    async def _replies(self) -> bool:
        """Returns True if the store answers a small question at once."""
        try:
            async with asyncio.timeout(min(self._timeout, _PATIENCE)):
                await self.connection.has_queue("-")
        except (JobwireError, TimeoutError, OSError):
            return False
        return True

    async def _look(self) -> None:
        names = await self._names.go_on(self.connection.search_queues)
        shown = names[:MOST_QUEUES]
        reading = await self.connection.figures(shown, most=self._most, since=self._since)
        workers = await self._count_workers(shown)
        now, self._since = time.time(), reading.at
        found = {one.name: _marked(one) for one in reading.queues}
        for figures in found.values():
            self.series.setdefault(figures.name, Series()).add(now, figures.counts, figures.turnover)
        for gone in self.series.keys() - set(shown):
            del self.series[gone]
        self._silent = False
        self.look = Look(now, found, workers, len(names) - len(shown), not self._names.complete)

    async def _look_closer(self) -> float:
        """Looks at a few queues more closely. Returns the seconds that it took. A failure is that of one queue, whose
        turn comes again later: the figures of the look are shown without it."""
        began = time.monotonic()
        try:
            await self.ask(lambda: self.closer.go_on(self.look.figures, self._known_queue))
        except (JobwireError, NoSuchQueue) as error:
            _log.info("a closer look at store %r failed: %s; it is repeated later", self.name, redact(str(error)))
        except Exception:  # as with the look itself
            _log.exception("a closer look at store %r failed; it is repeated later", self.name)
        return time.monotonic() - began

    async def _count_workers(self, names: Sequence[str]) -> Mapping[str, int | None]:
        try:
            return await self.connection.worker_counts(names)
        except (NotSupported, StoreRefused):
            return dict.fromkeys(names)

    def _adapt(self, took: float) -> None:
        """Counts fewer jobs one by one after a long look, and more after a short one. The limits are so far apart that
        ten times as many never make a short look a long one."""
        if took > _LONG_LOOK:
            self._most = max(_FEWEST_COUNTED, self._most // 10)
        elif took < _SHORT_LOOK:
            self._most = min(MOST_COUNTED, self._most * 10)

    def _failed(self, error: BaseException) -> None:
        reason = "it did not answer in time" if isinstance(error, TimeoutError) else redact(str(error))
        self.look = replace(self.look, trouble=reason)

    async def count(self, queue: str) -> QueueFigures:
        """Returns the figures of one queue as they are now. Raises StoreUnavailable if there is no answer in time."""
        reading = await self.ask(lambda: self.connection.figures([queue], most=self._most))
        return _marked(reading.queues[0])

    # --- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, question: Callable[[], Awaitable[T]]) -> T:
        """Returns the answer of the store. Raises StoreUnavailable if there is none in time."""
        within = min(self._timeout, _PATIENCE) if self._silent else self._timeout
        try:
            async with asyncio.timeout(within):
                return await question()
        except TimeoutError:
            raise StoreUnavailable(f"the store did not answer within {within:g} s") from None

    async def queue(self, name: str) -> Queue:
        """Returns a queue that exists. Raises NoSuchQueue otherwise: opening would make it. A queue that has figures is
        returned also if the store does not answer. The figures are then marked as stale until it does."""
        try:
            exists = await self.ask(lambda: self.connection.has_queue(name))
        except StoreUnavailable as error:
            self._silent = True
            self._failed(error)
            if name not in self.look.figures:
                raise
        else:
            if self._silent:
                self._silent = False
                self._answers.set()
            if not exists:
                raise NoSuchQueue(name)
        return await self._known_queue(name)

    async def _known_queue(self, name: str) -> Queue:
        found = self._queues.pop(name, None) or Queue(name, self.connection)
        self._queues[name] = found  # the most recently used one is the last
        if len(self._queues) > _MOST_OPEN:
            oldest = next(iter(self._queues))
            await self._queues.pop(oldest).close()
        return found

    async def kept(self, key: Hashable, seconds: float, question: Callable[[], Awaitable[T]]) -> T:
        """Returns the answer to a question that takes long, or the one that a page got in the last seconds. An action
        makes all such answers outdated."""
        now = time.monotonic()
        self._kept = {other: one for other, one in self._kept.items() if one[0] > now}
        known = self._kept.get(key)
        if known is None:
            answer = await self.ask(question)
            self._kept[key] = now + seconds, answer
            return answer
        return known[1]

    def has(self, feature: Feature) -> bool:
        return self.connection.capabilities.has(feature)

    async def part(self, feature: Feature, question: Callable[[], Awaitable[T]]) -> T | None:
        """Returns the answer, or None if the protocol or the server lacks the feature, or if the store does not answer
        and the page shows stale figures."""
        if not self.has(feature):
            return None
        try:
            return await self.ask(question)
        except NotSupported:
            return None
        except StoreUnavailable:
            if not self._silent:
                raise
            return None

    async def schedules(self, queue: Queue) -> tuple[Sequence[Schedule], bool]:
        """Returns the schedules of a queue, and True if these are all."""
        return await self.ask(lambda: queue.search_schedules(MOST_SEARCHED))

    def tail(self, queue: Queue) -> EventTail:
        """Returns the last events of a queue, which are gathered as long as a page asks for them."""
        for name, tail in list(self._tails.items()):
            if tail.ended:
                del self._tails[name]
        return self._tails.setdefault(queue.name, EventTail(queue))
