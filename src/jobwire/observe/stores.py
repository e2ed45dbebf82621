"""The lengths of queues, read from the store at each scrape.

A scrape arrives in a thread of the HTTP server, while the workers' event loop may be busy or blocked by a handler. So
the reads have a thread, an event loop and connections of their own. The first scrape opens them: without scrapes they
cost nothing. A store must answer within `timeout` seconds. An answer younger than `fresh_for` is used for the next
scrape too, so that frequent scrapes put no load on the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jobwire.boundary import Backend
from jobwire.connection import Connection
from jobwire.errors import JobwireError, StoreUnavailable
from jobwire.model import State

_SPARE = 1.0
"""Seconds beyond the timeout for the thread to return its result."""

Counts = Mapping[State, int]


@dataclass(frozen=True, slots=True)
class Reading:
    """The result from one store: whether it answered, and the lengths of the queues that it could read."""

    connection: Connection
    connected: bool
    lengths: Mapping[str, Counts] = field(default_factory=dict[str, Counts])


class Stores:
    """Reads the lengths of queues from any number of stores."""

    def __init__(self, timeout: float, fresh_for: float) -> None:
        self._timeout = timeout
        self._fresh_for = fresh_for
        self._asking = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._twins: dict[Connection, Backend] = {}
        self._asked: frozenset[tuple[Connection, str]] = frozenset()
        self._answers: list[Reading] = []
        self._at = float("-inf")

    def read(self, queues: Iterable[tuple[Connection, str]]) -> list[Reading]:
        """Returns a reading per store. Blocks the calling thread, for little longer than the timeout at most."""
        wanted = frozenset(queues)
        with self._asking:
            if wanted != self._asked or time.monotonic() - self._at > self._fresh_for:
                by_store: dict[Connection, list[str]] = {}
                for connection, queue in wanted:
                    by_store.setdefault(connection, []).append(queue)
                self._answers = self._ask(by_store) if by_store else []
                self._asked, self._at = wanted, time.monotonic()
            return self._answers

    def close(self) -> None:
        with self._asking:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            self._at = float("-inf")
            if loop is None or thread is None:
                return
            ending = asyncio.run_coroutine_threadsafe(self._end(), loop)
            try:
                ending.result(self._timeout + _SPARE)
            finally:
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                loop.close()

    def _ask(self, by_store: Mapping[Connection, list[str]]) -> list[Reading]:
        asked = asyncio.run_coroutine_threadsafe(self._read_all(by_store), self._running_loop())
        try:
            return asked.result(self._timeout + _SPARE)
        except TimeoutError:
            asked.cancel()
            return [Reading(connection, connected=False) for connection in by_store]

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="jobwire-metrics", daemon=True)
            self._thread.start()
        return self._loop

    async def _read_all(self, by_store: Mapping[Connection, list[str]]) -> list[Reading]:
        return await asyncio.gather(*(self._read(connection, queues) for connection, queues in by_store.items()))

    async def _read(self, connection: Connection, queues: list[str]) -> Reading:
        try:
            async with asyncio.timeout(self._timeout):
                backend = await self._twin(connection)
                answers = await asyncio.gather(*(_lengths(backend, queue) for queue in queues))
        except (StoreUnavailable, TimeoutError):
            return Reading(connection, connected=False)
        except JobwireError:
            return Reading(connection, connected=True)  # it answered, with an error
        told = zip(queues, answers, strict=True)
        return Reading(connection, True, {queue: counts for queue, counts in told if counts is not None})

    async def _twin(self, connection: Connection) -> Backend:
        twin = self._twins.get(connection)
        if twin is None:
            twin = connection.backend.twin()
            try:
                await twin.open()
            except BaseException:
                await twin.close()
                raise
            self._twins[connection] = twin
        return twin

    async def _end(self) -> None:
        """Cancels the reads of a scrape that timed out, and closes the connections."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        twins = list(self._twins.values())
        self._twins.clear()
        with contextlib.suppress(JobwireError, TimeoutError):
            async with asyncio.timeout(self._timeout):
                for twin in twins:
                    await twin.close()


async def _lengths(backend: Backend, queue: str) -> Counts | None:
    """Returns the counts of a queue, or None if the store refuses: the other queues are still shown."""
    try:
        return await backend.counts(queue)
    except StoreUnavailable:
        raise
    except JobwireError:
        return None
