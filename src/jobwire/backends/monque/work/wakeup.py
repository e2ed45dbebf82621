"""Wakes workers that wait: one change stream for all of them, or polling where the server has no change streams.

The stream runs only while a worker waits. Each waiting worker reads the queue once the stream is open, so no job is
missed between a claim that found nothing and the first event. After an error the stream continues from its token. If
the server does not have that token any more, a new stream begins and every waiting worker reads the queue. The first
event wakes at once, without a debounce that a steady flow of inserts could extend without end.

A job that is due wakes one worker, the one that has waited for longest: fifty workers that all read the queue for each
job took five times the CPU. If that worker can't claim, it passes the wakeup on. A job that is due later is known to
all of them, since any one of them could be busy at that time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from itertools import islice
from typing import Any

from pymongo import errors as driver

from jobwire.backends.monque.connection.change_stream import AWAIT_MS, UNREADABLE_TOKEN, open_stream
from jobwire.backends.monque.connection.clock import ServerClock, ms_of
from jobwire.backends.monque.connection.errors import failure_of
from jobwire.backends.monque.connection.store import Document, Store
from jobwire.backoff import reconnect_delay
from jobwire.errors import JobwireError

NextDue = Callable[[], Coroutine[Any, Any, int | None]]

_log = logging.getLogger("jobwire.monque")

POLL = 1.0
"""Seconds between two reads where there is no change stream (Monque's pollInterval)."""
_OPEN_WITHIN = 2.0
_LINGER = 2.0
_TOKEN_LOST = frozenset({136, 260, 280, 286})  # CappedPositionLost, InvalidResumeToken, ChangeStreamFatal, HistoryLost
_NO_STREAMS = frozenset({40_573, 40_415})

# The changes that the peer watches, and `replace`, which it does not.
PIPELINE: list[Mapping[str, Any]] = [
    {
        "$match": {
            "$or": [
                {"operationType": {"$in": ["insert", "replace"]}, "fullDocument.status": "pending"},
                {
                    "operationType": "update",
                    "$or": [
                        {"updateDescription.updatedFields.status": "pending"},
                        {"updateDescription.updatedFields.nextRunAt": {"$exists": True}},
                    ],
                },
            ]
        }
    },
    {"$project": {"fullDocument.name": 1, "fullDocument.nextRunAt": 1, "fullDocument.status": 1}},
]


class Waiter:
    """One waiting worker. `due_ms` is the earliest time at which a job of its queue is known to be due."""

    def __init__(self, clock: ServerClock) -> None:
        self._clock = clock
        self.due_ms: int | None = None
        self.look = True
        self.changed = asyncio.Event()
        self.informed = False
        """True if the queue has been read, and every change since then arrives here."""
        self.woken = False
        """True if the wait has ended because a job was due, and no claim has followed it yet."""

    def wake_at(self, due_ms: int) -> None:
        """Wakes the worker at this time, if it is earlier than the one known."""
        if self.due_ms is None or due_ms < self.due_ms:
            self.due_ms = due_ms
            self.changed.set()

    def look_again(self) -> None:
        """Makes the worker read the queue again: changes may have been missed."""
        self.look = True
        self.informed = False
        self.changed.set()

    @property
    def quiet(self) -> bool:
        """True if it is certain that no job is due."""
        return self.informed and not self.is_due

    @property
    def is_due(self) -> bool:
        return self.due_ms is not None and self._clock.soon(self.due_ms) == 0


class Wakeup:
    """The waiting workers of a backend, by queue, and the change stream that wakes them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiters: dict[str, dict[Waiter, None]] = {}  # the one that has waited for longest comes first
        self._task: asyncio.Task[None] | None = None
        self._open = asyncio.Event()
        self._token: Mapping[str, Any] | None = None

    @property
    def listening(self) -> bool:
        """True if the change stream is open."""
        return self._open.is_set()

    def wake(self, queue: str, due_ms: int, jobs: int = 1) -> None:
        """Wakes one worker of a queue for each job that is due, or all of them when it is due later. A worker that has
        been woken and has not left yet is for another job."""
        waiters = self._waiters.get(queue, {})
        if self._store.clock.soon(due_ms) > 0:
            for waiter in waiters:
                waiter.wake_at(due_ms)
            return
        for waiter in islice((one for one in waiters if not one.is_due), jobs):
            waiter.wake_at(due_ms)

    async def wait(self, queue: str, timeout: float, next_due: NextDue, waiter: Waiter) -> None:
        """Returns when a job of the queue is due, or after the timeout. The waiter must be new, and is used once."""
        self._waiters.setdefault(queue, {})[waiter] = None
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._listen()
                    await self._until_due(waiter, next_due)
        except BaseException:
            if waiter.is_due:  # it was woken and will not claim: another one must
                self.wake(queue, 0)
            raise
        finally:
            waiter.informed = False
            waiters = self._waiters[queue]
            del waiters[waiter]
            if not waiters:
                del self._waiters[queue]

    async def _until_due(self, waiter: Waiter, next_due: NextDue) -> None:
        while True:
            waiter.changed.clear()
            if waiter.look:
                waiter.look = False
                listening = self.listening
                due = await self._store.sheltered(next_due())
                if due is not None:
                    waiter.wake_at(due)
                waiter.informed = listening and self.listening and not waiter.look
            if waiter.is_due:
                waiter.woken = True
                return
            patience = self._store.clock.soon(waiter.due_ms) if waiter.due_ms is not None else None
            if not waiter.informed:
                patience = POLL if patience is None else min(patience, POLL)
            try:
                async with asyncio.timeout(patience):
                    await waiter.changed.wait()
            except TimeoutError:
                waiter.look = not waiter.is_due

    # --- the stream -------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        if not self._store.streams:
            return
        if self._task is None or self._task.done():
            self._open.clear()
            self._token = None
            self._task = asyncio.create_task(self._watch())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_OPEN_WITHIN):
                await self._open.wait()

    async def _watch(self) -> None:
        failures = 0
        while self._waiters:
            try:
                await self._read_stream()
                failures = 0
            # After any error the stream must be opened again: without it, workers would poll from then on.
            except Exception as error:
                self._open.clear()
                self._wake_all()
                code = error.code if isinstance(error, driver.OperationFailure) else None
                if code in _NO_STREAMS:
                    self._store.streams = False
                    return
                if code in _TOKEN_LOST or code in UNREADABLE_TOKEN:
                    self._token = None
                pause = reconnect_delay(failures)
                failures += 1
                reason = error if isinstance(error, JobwireError) else failure_of(error, self._store.where)
                _log.warning(
                    "the change stream broke, so workers poll; it is opened again in %.1f s: %s", pause, reason
                )
                await asyncio.sleep(pause)

    async def _read_stream(self) -> None:
        """Delivers events until no worker has waited for two seconds."""
        quiet = 0.0
        clock = asyncio.get_running_loop().time
        resumed = self._token is not None
        opening = self._store.jobs.watch(
            PIPELINE, full_document="updateLookup", max_await_time_ms=AWAIT_MS, resume_after=self._token
        )
        async with open_stream(self._store, opening) as stream:
            self._open.set()
            if resumed:
                _log.info("the change stream is open again and continues from its last token")
            while True:
                change = await stream.next()
                self._token = stream.token
                if change is not None:
                    self._deliver(change)
                if self._waiters:
                    quiet = 0.0
                elif not quiet:
                    quiet = clock()
                elif clock() - quiet > _LINGER:
                    self._open.clear()
                    self._token = None
                    return

    def _deliver(self, change: Mapping[str, Any]) -> None:
        document: Document = change.get("fullDocument") or {}
        due = ms_of(document.get("nextRunAt"))
        if document.get("status") == "pending" and due is not None:
            self.wake(str(document.get("name")), due)

    def _wake_all(self) -> None:
        """Makes every waiting worker read its queue: the stream may have missed changes."""
        for waiters in self._waiters.values():
            for waiter in waiters:
                waiter.look_again()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        self._open.clear()
