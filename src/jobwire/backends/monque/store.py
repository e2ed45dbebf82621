"""The connection to a MongoDB server and the two collections that jobwire uses there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from datetime import UTC
from typing import Any, TypeVar, cast

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo import AsyncMongoClient, WriteConcern
from pymongo import errors as driver
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase

from jobwire import embedded
from jobwire.backends.monque import indexes, side_version
from jobwire.backends.monque.clock import ServerClock, ticks_ns
from jobwire.backends.monque.failure import Conversation
from jobwire.backends.monque.settings import Place
from jobwire.backends.side_version import bring_up_to_date
from jobwire.errors import InvalidOption, StoreRefused, StoreUnavailable

Document = dict[str, Any]
Answer = TypeVar("Answer")

OLDEST_SERVER = 6
# A date beyond year 9999 or a text that is not UTF-8 must not keep the rest of a batch from being read.
READABLE: CodecOptions[Document] = CodecOptions(
    tz_aware=True, tzinfo=UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO,
    unicode_decode_error_handler="replace",
)  # fmt: skip
CALL = 15.0
"""Seconds that a conversation with the server may take: longer than an election (12 s), shorter than the patience of a
worker with a call (30 s)."""
LONG = 600.0
"""For what touches every job of a queue, or builds an index."""
ATTEMPT = 6.0
"""For one attempt of what is repeated: a connection that died without a sign costs so much, and not the whole call."""
_RAW: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)
# Given to the driver where the URL says nothing. The driver's monitor finds dead connections within the connect
# timeout, and has all of them closed.
_DEFAULTS: Mapping[str, Any] = {
    "w": "majority",
    "wTimeoutMS": 10_000,
    "serverSelectionTimeoutMS": 15_000,
    "connectTimeoutMS": 5_000,
    # Two connections less per server. A failover is noticed by the call that meets it, not by one that waits for it.
    "serverMonitoringMode": "poll",
    "appName": "jobwire",
}


_TIMEOUTS = frozenset({"timeoutms", "sockettimeoutms", "connecttimeoutms", "serverselectiontimeoutms", "wtimeoutms"})
_NO_HANGING = frozenset({"timeoutms", "sockettimeoutms"})
_AFTER_MAJORITY_MS = 5_000
_CLOCK_TRIES = 3
_CLOCK_WITHIN = 2.0
_CLOCK_QUICK_NS = 20_000_000
_LAST_ERRANDS = 2.0
_LAST_WORDS = 1.0
"""Seconds for telling the server which sessions and cursors are no longer needed."""


class Store:
    """One client with its pool. It belongs to the event loop in which it was opened."""

    def __init__(self, place: Place, *, make_indexes: bool, side_is_known: bool = False) -> None:
        self.place = place
        self.where = place.where
        self.streams = True
        """The server can push changes: a replica set or a sharded cluster. Known once opened."""
        self.side_is_known = side_is_known
        """The version of the side data has been checked. A twin does not check again: it renews leases of jobs that run
        already."""
        self.clock = ServerClock()
        self._sharded = False
        self._keeps_deadlines = _TIMEOUTS.isdisjoint(place.driver_options)
        self._make_indexes = make_indexes and place.create_indexes
        self._client: AsyncMongoClient[Document] | None = None
        self._server: embedded.Server | None = None
        self._opening = asyncio.Lock()
        self._errands: set[asyncio.Task[Any]] = set()

    @property
    def database(self) -> AsyncDatabase[Document]:
        if self._client is None:
            raise StoreUnavailable(f"{self.where} is not open")
        return self._client.get_database(self.place.database, codec_options=READABLE)

    @property
    def jobs(self) -> AsyncCollection[Document]:
        return self.database[self.place.collection]

    @property
    def raw_jobs(self) -> AsyncCollection[RawBSONDocument]:
        """The jobs as they are stored, byte by byte."""
        return cast("AsyncCollection[RawBSONDocument]", self.jobs.with_options(codec_options=_RAW))

    @property
    def side(self) -> AsyncCollection[Document]:
        return self.database[self.place.side]

    @property
    def hasty_side(self) -> AsyncCollection[Document]:
        """For what is written before a job's own write: in one replica set, that one's confirmation covers both."""
        return self.side if self._sharded else self.side.with_options(write_concern=WriteConcern(1))

    def jobs_in(self, session: AsyncClientSession) -> AsyncCollection[Document]:
        """The jobs as the caller's own client sees them: a session can be used with its client only."""
        return session.client.get_database(self.place.database)[self.place.collection]

    def reaching(self, deadline: float | None = None) -> Conversation:
        """A conversation with the server, which ends within `deadline` seconds (`CALL` if None) and raises errors of
        jobwire only."""
        return Conversation(self.where, self.deadline(CALL if deadline is None else deadline))

    def deadline(self, seconds: float) -> float | None:
        """None if the URL has timeouts of its own: those count."""
        return seconds if self._keeps_deadlines else None

    async def open(self) -> None:
        async with self._opening:
            if self._client is not None:
                return
            if self.place.folder is not None:
                self._server = await asyncio.to_thread(embedded.mongo, self.place.folder)
            client = self._connect()
            try:
                async with self.reaching():
                    await self._look_at(client)
                self._client = client
                if not self.side_is_known:
                    await bring_up_to_date(side_version.MonqueSideData(self), side_version.STEPS)
                    self.side_is_known = True
                if self._make_indexes:
                    async with self.reaching(LONG):
                        await self.jobs.create_indexes(indexes.job_indexes())
                        await self.side.create_indexes(indexes.side_indexes())
            except BaseException:
                self._client = None
                await self._say_goodbye(client)
                await self._leave_server()
                raise

    async def look_at_clock(self) -> None:
        """Ask the server for its time, if it was not asked lately. A slow answer is worth little, so ask again then."""
        if not self.clock.old or self._client is None:
            return
        self.clock.trust()  # one call asks; those beside it go by what was known
        # Without an answer the clock goes on as it was, and the call that wanted it finds out about the server itself.
        with contextlib.suppress(StoreUnavailable):
            async with self.reaching(_CLOCK_WITHIN):
                await self._set_clock(self._client)

    async def _set_clock(self, client: AsyncMongoClient[Document]) -> Document:
        """Set the clock by the server's greeting, which is returned."""
        answers: list[tuple[int, int, Document]] = []
        while len(answers) < _CLOCK_TRIES:
            asked = ticks_ns()
            greeting = await client.admin.command("hello", codec_options=READABLE)
            answers.append((ticks_ns() - asked, asked, greeting))
            if answers[-1][0] < _CLOCK_QUICK_NS:
                break
        took, asked, greeting = min(answers, key=lambda answer: answer[0])
        self.clock.set(greeting["localTime"], asked, asked + took)
        return greeting

    async def sheltered(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        """The answer of a call that goes on when its caller is cancelled, as one who waits often is. The driver leaves
        a socket behind if it is cancelled while it connects; `close` waits for what is still under way."""
        return await asyncio.shield(self.send(call))

    def send(self, call: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        """Start a call that may go on for a while when its caller is gone."""
        errand = asyncio.create_task(call)
        self._errands.add(errand)
        errand.add_done_callback(self._returned)
        return errand

    async def answer(self, errand: asyncio.Task[Answer], within: float) -> Answer:
        """The answer of a call that was sent; StoreUnavailable if there is none after so many seconds. The call is
        cancelled then, and what the driver does on that occasion, such as telling the server, is not waited for."""
        done, _ = await asyncio.wait([errand], timeout=within)
        if not done:
            errand.cancel()
            raise StoreUnavailable(f"{self.where} is unavailable: no answer within {within:g} s")
        return errand.result()

    def _returned(self, errand: asyncio.Task[Any]) -> None:
        self._errands.discard(errand)
        if not errand.cancelled():
            errand.exception()  # whoever asked has had it, or is gone

    async def close(self) -> None:
        if self._errands:
            await asyncio.wait(self._errands, timeout=_LAST_ERRANDS)
        client, self._client = self._client, None
        if client is not None:
            await self._say_goodbye(client)
        await self._leave_server()

    async def _say_goodbye(self, client: AsyncMongoClient[Document]) -> None:
        with pymongo.timeout(_LAST_WORDS):
            await client.close()

    def _connect(self) -> AsyncMongoClient[Document]:
        url = self.place.driver_url if self._server is None else self._server.url
        defaults = {key: value for key, value in _DEFAULTS.items() if key.lower() not in self.place.driver_options}
        if not self._keeps_deadlines and _NO_HANGING.isdisjoint(self.place.driver_options):
            # Longer than the server may wait for a majority.
            defaults["socketTimeoutMS"] = (self.place.write_timeout_ms or _DEFAULTS["wTimeoutMS"]) + _AFTER_MAJORITY_MS
        try:
            return AsyncMongoClient(url, tz_aware=True, **defaults)
        except (driver.ConfigurationError, driver.InvalidURI, ValueError) as error:
            raise InvalidOption("url", self.where, str(error)) from None

    async def _look_at(self, client: AsyncMongoClient[Document]) -> None:
        hello = await self._set_clock(client)
        self._sharded = hello.get("msg") == "isdbgrid"
        self.streams = "setName" in hello or self._sharded
        if self.streams is False and not hello.get("isWritablePrimary"):
            raise StoreRefused(f"{self.where} takes no writes")
        version = (await client.admin.command("buildInfo"))["versionArray"]
        if version[0] < OLDEST_SERVER:
            shown = ".".join(str(part) for part in version[:3])
            raise StoreRefused(f"{self.where} is MongoDB {shown}; Monque's indexes need {OLDEST_SERVER}.0 or newer")

    async def _leave_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)
