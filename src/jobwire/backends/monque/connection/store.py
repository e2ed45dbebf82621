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
from jobwire.backends.monque.address import CollectionAddress
from jobwire.backends.monque.connection import indexes, side_version
from jobwire.backends.monque.connection.clock import ServerClock, ticks_ns
from jobwire.backends.monque.connection.errors import Conversation
from jobwire.backends.side_version import bring_up_to_date
from jobwire.errors import InvalidOption, StoreRefused, StoreUnavailable

Document = dict[str, Any]
Answer = TypeVar("Answer")

OLDEST_SERVER = 6
# With these, a date beyond year 9999 or a text that is not UTF-8 does not keep the rest of a batch from being read.
READABLE: CodecOptions[Document] = CodecOptions(
    tz_aware=True, tzinfo=UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO,
    unicode_decode_error_handler="replace",
)  # fmt: skip
CALL = 15.0
"""Seconds that a call may take: longer than an election (12 s), shorter than a worker waits for a call (30 s)."""
LONG = 600.0
"""Seconds for a call that changes every job of a queue, or builds an index."""
ATTEMPT = 6.0
"""Seconds for one attempt of a call that is repeated: a connection that broke unnoticed costs this, not the whole
call."""
_RAW: CodecOptions[Any] = CodecOptions(document_class=RawBSONDocument)
# The driver's options where the URL has none. The driver's monitor notices broken connections within the connect
# timeout, and closes all of them.
_DEFAULTS: Mapping[str, Any] = {
    "w": "majority",
    "wTimeoutMS": 10_000,
    "serverSelectionTimeoutMS": 15_000,
    "connectTimeoutMS": 5_000,
    # This saves two connections per server. A failover is then noticed by the next call, not at once.
    "serverMonitoringMode": "poll",
    "appName": "jobwire",
}


_TIMEOUTS = frozenset({"timeoutms", "sockettimeoutms", "connecttimeoutms", "serverselectiontimeoutms", "wtimeoutms"})
_SOCKET_TIMEOUTS = frozenset({"timeoutms", "sockettimeoutms"})
_AFTER_MAJORITY_MS = 5_000
_CLOCK_TRIES = 3
_CLOCK_WITHIN = 2.0
_CLOCK_QUICK_NS = 20_000_000
_CALLS_END_WITHIN = 2.0
_CLOSE_WITHIN = 1.0
"""Seconds in which the driver may report to the server which sessions and cursors are no longer needed."""


class Store:
    """A client of the driver with its pool. It belongs to the event loop in which it was opened."""

    def __init__(self, address: CollectionAddress, *, make_indexes: bool, side_is_known: bool = False) -> None:
        self.address = address
        self.where = address.where
        self.streams = True
        """True if the server has change streams: it is a replica set or a sharded cluster. Known once opened."""
        self.side_is_known = side_is_known
        """True if the version of the side data has been checked. A twin does not check it again: it must not refuse to
        start, since it extends leases of jobs that run already."""
        self.clock = ServerClock()
        self._sharded = False
        self._keeps_deadlines = _TIMEOUTS.isdisjoint(address.driver_options)
        self._make_indexes = make_indexes and address.create_indexes
        self._client: AsyncMongoClient[Document] | None = None
        self._jobs: AsyncCollection[Document] | None = None
        self._server: embedded.Server | None = None
        self._opening = asyncio.Lock()
        self._calls: set[asyncio.Task[Any]] = set()

    @property
    def database(self) -> AsyncDatabase[Document]:
        if self._client is None:
            raise StoreUnavailable(f"{self.where} is not open")
        return self._client.get_database(self.address.database, codec_options=READABLE)

    @property
    def jobs(self) -> AsyncCollection[Document]:
        """The collection of jobs. Kept, since the driver takes 15 µs to make one."""
        if self._jobs is None or self._jobs.database.client is not self._client:
            self._jobs = self.database[self.address.collection]
        return self._jobs

    @property
    def raw_jobs(self) -> AsyncCollection[RawBSONDocument]:
        """The collection of jobs, read as bytes."""
        return cast("AsyncCollection[RawBSONDocument]", self.jobs.with_options(codec_options=_RAW))

    @property
    def side(self) -> AsyncCollection[Document]:
        return self.database[self.address.side]

    @property
    def unconfirmed_side(self) -> AsyncCollection[Document]:
        """The side data, for writes that come before a write to the job. These are not confirmed by the majority: in
        one replica set, the confirmation of the job's write covers both."""
        return self.side if self._sharded else self.side.with_options(write_concern=WriteConcern(1))

    def jobs_in(self, session: AsyncClientSession) -> AsyncCollection[Document]:
        """Returns the collection of jobs on the client of the caller's session, since a session works with its own
        client only."""
        return session.client.get_database(self.address.database)[self.address.collection]

    def reaching(self, deadline: float | None = None) -> Conversation:
        """Returns a block for calls of the driver. It ends within `deadline` seconds (CALL by default) and raises
        jobwire's errors only."""
        return Conversation(self.where, self.deadline(CALL if deadline is None else deadline))

    def deadline(self, seconds: float) -> float | None:
        """Returns the given seconds, or None if the URL has timeouts, which count instead."""
        return seconds if self._keeps_deadlines else None

    async def open(self, *, look_only: bool = False) -> None:
        """Connects. Unless the collections are only to be looked at, also makes missing indexes and brings the side
        data up to date."""
        async with self._opening:
            if self._client is not None:
                return
            if self.address.folder is not None:
                self._server = await asyncio.to_thread(embedded.mongo, self.address.folder)
            client = self._connect()
            try:
                async with self.reaching():
                    await self._inspect(client)
                self._client = client
                if not self.side_is_known and not look_only:
                    await bring_up_to_date(side_version.MonqueSideVersion(self), side_version.STEPS)
                    self.side_is_known = True
                if self._make_indexes and not look_only:
                    async with self.reaching(LONG):
                        await self.jobs.create_indexes(indexes.job_indexes())
                        await self.side.create_indexes(indexes.side_indexes())
            except BaseException:
                self._client = None
                await self._close_client(client)
                await self._leave_server()
                raise

    async def look_at_clock(self) -> None:
        """Asks the server for its time, if that was not done in the last 30 seconds. Asks again if the answer is slow,
        since it is then inexact."""
        if not self.clock.old or self._client is None:
            return
        self.clock.trust()  # one call asks, and those beside it use the clock as it is
        # Without an answer the clock stays as it is. The caller's next call raises if the server is unavailable.
        with contextlib.suppress(StoreUnavailable):
            async with self.reaching(_CLOCK_WITHIN):
                await self._set_clock(self._client)

    async def _set_clock(self, client: AsyncMongoClient[Document]) -> Document:
        """Sets the clock by the server's reply to `hello`. Returns that reply."""
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

    async def count_up_to(self, condition: Document, most: int) -> int:
        """Counts the jobs of one range of the claim index. Stops after `most` and one."""
        command: Document = {"count": self.address.collection, "query": condition, "limit": most + 1}
        limits: Document = {"maxTimeMS": round(CALL * 1000)}
        answer = await indexes.hinted(
            lambda hint: self.database.command({**command, **limits, **({} if hint is None else {"hint": hint})}),
            indexes.CLAIM_INDEX,
        )
        return int(answer["n"])

    async def sheltered(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        """Returns the answer of a call that goes on when its caller is cancelled, as waiting callers often are. The
        driver would leave a socket open if it were cancelled while it connects. `close` waits for calls that are under
        way."""
        return await asyncio.shield(self.send(call))

    def send(self, call: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        """Starts a call that may go on when its caller has ended."""
        sent = asyncio.create_task(call)
        self._calls.add(sent)
        sent.add_done_callback(self._call_ended)
        return sent

    async def answer(self, call: asyncio.Task[Answer], within: float) -> Answer:
        """Returns the answer of a call that was sent. Raises StoreUnavailable if there is none after `within` seconds.
        The call is then cancelled, without waiting for what the driver does about it, such as a message to the
        server."""
        done, _ = await asyncio.wait([call], timeout=within)
        if not done:
            call.cancel()
            raise StoreUnavailable(f"{self.where} is unavailable: no answer within {within:g} s")
        return call.result()

    def _call_ended(self, call: asyncio.Task[Any]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # the caller has seen it, or has ended

    async def close(self) -> None:
        if self._calls:
            await asyncio.wait(self._calls, timeout=_CALLS_END_WITHIN)
        client, self._client = self._client, None
        if client is not None:
            await self._close_client(client)
        await self._leave_server()

    async def _close_client(self, client: AsyncMongoClient[Document]) -> None:
        with pymongo.timeout(_CLOSE_WITHIN):
            await client.close()

    def _connect(self) -> AsyncMongoClient[Document]:
        url = self.address.driver_url if self._server is None else self._server.url
        defaults = {key: value for key, value in _DEFAULTS.items() if key.lower() not in self.address.driver_options}
        if not self._keeps_deadlines and _SOCKET_TIMEOUTS.isdisjoint(self.address.driver_options):
            # Longer than the server may wait for a majority.
            majority_ms = self.address.write_timeout_ms or _DEFAULTS["wTimeoutMS"]
            defaults["socketTimeoutMS"] = majority_ms + _AFTER_MAJORITY_MS
        try:
            return AsyncMongoClient(url, tz_aware=True, **defaults)
        except (driver.ConfigurationError, driver.InvalidURI, ValueError) as error:
            raise InvalidOption("url", self.where, str(error)) from None

    async def _inspect(self, client: AsyncMongoClient[Document]) -> None:
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
