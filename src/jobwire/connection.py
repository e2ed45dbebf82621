"""Connections: one store, shared by any number of queues and workers."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Self

from jobwire import forking, urls
from jobwire.backend import Backend
from jobwire.errors import MissingExtra

_EXTRAS = {"bullmq": "redis", "bridgemq": "redis", "monque": "mongo", "pgboss": "postgres"}


def connect(url: str | None = None) -> Connection:
    """A connection to share between queues and workers. Reaches the store when it is first used.

    Without a URL: the environment's JOBWIRE_URL, else an embedded server in ./.jobwire.
    """
    return Connection(url)


class Connection:
    """One store reached through one protocol, with its pool. Use `async with`, or `open` and `close`.

    A forked child process opens it again: it has none of its parent's connections.
    """

    def __init__(self, url: str | None = None) -> None:
        self.address = urls.parse(urls.default_url() if url is None else url)
        self.backend = load_backend(self.address)
        self._open = False
        self.lapsed = False
        """True in a forked child while it is closed there, though the parent had it open."""
        forking.follow(self, Connection._after_fork)

    async def open(self) -> Self:
        forking.notice()
        if not self._open:
            await self.backend.open()
            self._open = True
            self.lapsed = False
        return self

    async def close(self) -> None:
        self._open = self.lapsed = False
        await self.backend.close()

    def _after_fork(self) -> None:
        self.lapsed = self._open or self.lapsed
        self._open = False
        self.backend = self.backend.twin()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<Connection {self.address.redacted}>"


def load_backend(address: urls.Address) -> Backend:
    """The backend of an address. Imported here, on demand: a protocol's driver is needed only by those who use it."""
    try:
        module = importlib.import_module(f"jobwire.backends.{address.protocol}")
        backend: Backend = module.open_backend(address)
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("jobwire."):
            raise
        raise MissingExtra(f"{address.protocol}:", _EXTRAS[address.protocol]) from missing
    return backend


def resolve(where: str | Connection | None) -> tuple[Connection, bool]:
    """The connection meant by what a Queue or Worker was given, and whether they own it."""
    if isinstance(where, Connection):
        return where, False
    return Connection(where), True
