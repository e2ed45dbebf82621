"""Connections: one store, shared by any number of queues and workers."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Never, Self

from jobwire import checks, forking, urls
from jobwire.backoff import reconnect_delay
from jobwire.boundary import Backend, Capabilities, Feature, QueueList, Reading
from jobwire.checks import Seconds, seconds, text, whole
from jobwire.driver_imports import one_at_a_time
from jobwire.errors import Closed, MissingExtra, StoreUnavailable
from jobwire.protocols import PROTOCOLS
from jobwire.spelling import refuses_typos

_log = logging.getLogger("jobwire.connection")


@refuses_typos("connect()")
def connect(url: str | None = None, *, client: object | None = None, wait_for_store: Seconds = 0.0) -> Connection:
    """Returns a connection to share between queues and workers. It connects to the store when it is first used.

    Without a URL it uses the environment's JOBWIRE_URL, else an embedded server in ./.jobwire. `wait_for_store` is how
    long to wait for a store that does not answer yet.

    `client` is a redis-py client whose server is to be used: asyncio or blocking, also of sentinels or a cluster. The
    URL then has a protocol and options but no address: `connect("bullmq:?prefix=mail", client=client)`. The connection
    copies the client's settings and opens connections of its own. It never uses or closes the client.
    """
    return Connection(url, client=client, wait_for_store=wait_for_store)


@refuses_typos("a Connection")
class Connection:
    """A connection to one store by one protocol, with its pool. Use `async with`, or `open` and `close`.

    In a forked child process it opens again at its first use, and does not touch the parent's sockets.
    """

    def __init__(self, url: str | None = None, *, client: object | None = None, wait_for_store: Seconds = 0.0) -> None:
        self.address = _address_of(url, client)
        self.backend = load_backend(self.address)
        self._wait = seconds("wait_for_store", wait_for_store)
        self._opened = False
        self._closed = False
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        forking.follow(self, Connection._start_over)

    def _start_over(self) -> None:
        self._opened = False
        self._opening = asyncio.Lock()
        self._loop = None
        self.backend = self.backend.twin()

    @property
    def is_open(self) -> bool:
        """True once the connection is open, until it is closed or its event loop is."""
        return self._opened and not (self._loop is not None and self._loop.is_closed())

    def leave_closed_loop(self) -> None:
        """Starts over, with another backend, if the event loop that this was last opened in is closed, as in the second
        of two calls of `asyncio.run`."""
        if self._loop is not None and self._loop.is_closed():
            self._start_over()

    async def open(self, wait_for_store: Seconds = 0.0) -> Self:
        """Connects to the store, if that has not happened yet. Waits for a store that does not answer: `wait_for_store`
        seconds, or as long as given when the connection was made."""
        wait = seconds("wait_for_store", wait_for_store)
        forking.notice()
        self.leave_closed_loop()
        if not self.is_open:
            async with self._opening:
                if not self.is_open:
                    await self._open_backend(max(wait, self._wait))
                    self._opened, self._closed, self._loop = True, False, asyncio.get_running_loop()
        return self

    async def reach(self) -> None:
        """Opens the connection at its first use. Raises Closed if it has been closed."""
        if self._closed:
            raise Closed(f"the connection to {self.address.redacted} has been closed")
        await self.open()

    async def _open_backend(self, wait: float) -> None:
        """Opens the backend, repeatedly while the store is unavailable. Raises at once if the store refuses."""
        began = time.monotonic()
        missing: StoreUnavailable | None = None
        for attempt in itertools.count():
            left = began + wait - time.monotonic()
            try:
                # An embedded server starts in a thread that can't be cancelled, so it must be waited for.
                async with asyncio.timeout(left if wait and self.address.folder is None else None):
                    await self.backend.open()
            except StoreUnavailable as error:
                missing = error
            except TimeoutError:
                missing = missing or StoreUnavailable(f"{self.address.redacted} is unavailable: no answer in time")
            else:
                if missing is not None:
                    _log.info("the store answers after %.1f s; the connection is open", time.monotonic() - began)
                return
            if not wait:
                raise missing
            left = began + wait - time.monotonic()
            if left <= 0:
                raise StoreUnavailable(f"{missing} (waited {time.monotonic() - began:.1f} s for it)") from missing
            if attempt == 0:
                _log.warning("%s; waiting up to %g s for the store", missing, wait)
            await asyncio.sleep(min(reconnect_delay(attempt), left))

    async def queues(self) -> Sequence[str]:
        """Returns the names of all queues in the store, sorted: those of the URL's prefix, namespace, schema or
        collection."""
        return await (await self._queue_list()).names()

    async def has_queue(self, name: str) -> bool:
        """Returns True if there is such a queue. Stores nothing, while opening a Queue may register it."""
        return await (await self._queue_list()).has(text("name", name))

    async def search_queues(self, cursor: str | None = None) -> tuple[Sequence[str], str | None]:
        """Returns the names of some queues and the cursor with which the next call goes on, None at the end. A name may
        come twice. Each call is short, however much is in the store, while `queues` searches all of it."""
        return await (await self._queue_list()).search(checks.cursor("cursor", cursor))

    async def figures(self, queues: Sequence[str], *, most: int, since: datetime | None = None) -> Reading:
        """Returns counts, the oldest waiting job and more of many queues, in a few round trips. Stores nothing.

        If the store has to count jobs one by one, it counts at most `most` of a queue in each state, and returns how
        many came and went since `since`, the time of the last reading."""
        names, start = _names(queues), None if since is None else checks.aware("since", since)
        return await (await self._queue_list()).figures(names, whole("most", most, minimum=1), start)

    async def worker_counts(self, queues: Sequence[str]) -> Mapping[str, int | None]:
        """Returns the number of workers of each queue, None where the protocol does not list them."""
        names = _names(queues)
        if not self.capabilities.has(Feature.WORKERS) or self.backend.workers is None:
            return dict.fromkeys(names)
        await self.reach()
        return await self.capabilities.part(self.backend.workers, Feature.WORKERS).counts(names)

    @property
    def capabilities(self) -> Capabilities:
        """The features of this connection's protocol."""
        return self.backend.capabilities

    async def drop_queue(self, name: str) -> None:
        """Deletes the queue with everything in it, running jobs too, and with its settings, which
        `queue.admin.obliterate` may leave. Does nothing if there is no such queue."""
        wanted = text("name", name)
        known = await self._queue_list()
        if await known.has(wanted):
            await self.backend.obliterate(wanted, force=True)
            await known.forget(wanted)

    async def _queue_list(self) -> QueueList:
        self.backend.capabilities.require(Feature.QUEUES)
        await self.reach()
        return self.backend.capabilities.part(self.backend.queue_list, Feature.QUEUES)

    async def close(self) -> None:
        self.leave_closed_loop()
        self._opened, self._closed = False, True
        await self.backend.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __reduce__(self) -> Never:
        raise TypeError("a connection can't be pickled, nor a Queue or Worker; pass the URL, and make another there")

    def __repr__(self) -> str:
        return f"<Connection {self.address.redacted}>"


def _names(queues: Sequence[str]) -> list[str]:
    return [text("queues", name) for name in checks.items("queues", queues, "names")]


def _address_of(url: str | None, client: object | None) -> urls.Address:
    """Returns the parsed URL, with the address of the client if there is one."""
    if client is None:
        return urls.parse(urls.default_url() if url is None else url)
    named = urls.parse_without_address(url)
    with _driver_needed(named.protocol) as module:
        address: urls.Address = module.client_address(client, named)
    return address


def load_backend(address: urls.Address) -> Backend:
    """Returns the backend of an address. It is imported here, so that only the drivers in use must be installed."""
    with _driver_needed(address.protocol) as module:
        backend: Backend = module.open_backend(address)
    return backend


@contextmanager
def _driver_needed(protocol: str) -> Generator[Any]:
    """Yields the module of a protocol. If an import inside the block fails, raises an error that names the extra."""
    try:
        with one_at_a_time():
            yield importlib.import_module(f"jobwire.backends.{protocol}")
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("jobwire."):
            raise
        raise MissingExtra(f"{protocol}:", PROTOCOLS[protocol].store) from missing


def resolve(where: str | Connection | None) -> tuple[Connection, bool]:
    """Returns the connection for what a Queue or Worker was given, and whether the caller owns it and must close it."""
    if isinstance(where, Connection):
        return where, False
    return Connection(where), True
