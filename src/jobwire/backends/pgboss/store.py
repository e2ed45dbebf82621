"""A PostgreSQL server with a pg-boss schema: its connections, what the schema holds, and jobwire's schema beside it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence

from psycopg.pq import Conninfo

from jobwire import embedded
from jobwire.backends.pgboss import schema_install
from jobwire.backends.pgboss.failure import DUPLICATE_OBJECT, Refused
from jobwire.backends.pgboss.lending import Lending, Lent
from jobwire.backends.pgboss.schema import Layout, bare, check_columns, check_version, identifier
from jobwire.backends.pgboss.statements import Statements, source, statement
from jobwire.backends.pgboss.wire import Call, Row, Value, Wire, text
from jobwire.errors import JobwireError, StoreUnavailable
from jobwire.urls import Address, check_driver_options

_log = logging.getLogger("jobwire.pgboss")

_MOST_WIRES = 10
_DETECT = statement("detect", source("detect"))
_SIDE = statement("side_exists", "SELECT to_regclass(:table) IS NOT NULL")


class Store:
    """Shared by everything of one backend. Connections are made when they are needed, ten at most."""

    def __init__(self, address: Address) -> None:
        check_driver_options(address, {"ssl", *(one.keyword.decode() for one in Conninfo.get_defaults())})
        self.address = address
        self.name = address.options.get("schema", "pgboss")
        self.where = f"PostgreSQL at {address.redacted}"
        self._statements: Statements | None = None
        self.has_side = False
        self._url = address.driver_url
        self._server: embedded.Server | None = None
        self._idle: list[Wire] = []
        self.lending = Lending(self.where)
        self._free = asyncio.Semaphore(_MOST_WIRES)
        self._opening = asyncio.Lock()
        self._siding = asyncio.Lock()
        self._open = False
        self._resets = 0
        self._closed = False

    @property
    def statements(self) -> Statements:
        if self._statements is None:
            raise StoreUnavailable(f"{self.where} is not open")
        return self._statements

    @property
    def layout(self) -> Layout:
        return self.statements.layout

    @property
    def url(self) -> str:
        """For connections that the pool does not know: the listener's, a handler's own."""
        return self._url

    async def open(self) -> None:
        """Reach the server and learn what its schema holds; an empty database gets the schema, as Node gives it one."""
        async with self._opening:
            if self._open:
                return
            self._closed = False
            try:
                await self._reach()
            except BaseException:
                await self.close()
                raise
            self._open = True

    async def _reach(self) -> None:
        if self.address.folder is not None and self._server is None:
            self._server = await asyncio.to_thread(embedded.postgres, self.address.folder)
            self._url = self._server.url
        layout = await self._detect()
        if layout is None:
            async with self.wire() as wire:
                await schema_install.install_on(wire, self.name)
            layout = await self._detect()
        if layout is None:
            raise StoreUnavailable(f"{self.where} has no schema {self.name}, and it could not be made")
        if layout.is_newer:
            _log.warning(
                "schema %s is of version %d, newer than this jobwire knows: its own clients must do maintenance "
                "and schedules", self.name, layout.version,
            )  # fmt: skip
        self._statements = Statements(layout)
        self.has_side = await self._side_exists()

    async def close(self) -> None:
        self._open = False
        self._closed = True
        await self.reset()
        await self.lending.close()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)

    async def reset(self) -> None:
        """Drop every connection: those that nobody uses now, the others when they are given back."""
        self._resets += 1
        idle, self._idle = self._idle, []
        for wire in idle:
            wire.close()
        await self.lending.reset()

    # --- conversations ----------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def wire(self) -> AsyncGenerator[Wire]:
        """A connection for the caller alone."""
        async with self._free:
            wire = self._take() or await Wire.connect(self._url, self.where)
            age = self._resets
            try:
                yield wire
            finally:
                self._give_back(wire, age)

    def _give_back(self, wire: Wire, age: int) -> None:
        if wire.broken or age != self._resets or self._closed:
            wire.close()
        else:
            self._idle.append(wire)

    def _take(self) -> Wire | None:
        while self._idle:
            wire = self._idle.pop()
            if not wire.broken:
                return wire
            wire.close()
        return None

    async def run(self, calls: Sequence[Call]) -> list[list[Row]]:
        """The statements as one transaction in one round trip."""
        async with self._free:
            wire = self._take() or await Wire.connect(self._url, self.where)
            age = self._resets
            try:
                return await wire.run(calls)
            finally:
                self._give_back(wire, age)

    async def ask(
        self, name: str, /, values: Mapping[str, Value], *, table: str = "job", features: Sequence[str] = ()
    ) -> list[Row]:
        """The rows of one statement."""
        [rows] = await self.run([(self.statements.get(name, table, self.features(*features)), values)])
        return rows

    async def look(
        self, name: str, /, values: Mapping[str, Value], *, table: str = "job", features: Sequence[str] = ()
    ) -> list[Row]:
        """The same for readers, who see what is in jobwire's own schema as soon as it is there.

        Whoever makes the schema may write to it between our choice of the statement and its turn. The schema is
        therefore looked for after the reading, in the same round trip, and the reading repeated if it has appeared.
        """
        if not self.has_side:
            statement = self.statements.get(name, table, features)
            rows, [(self.has_side,)] = await self.run([(statement, values), self._side_call()])
            if not self.has_side:
                return rows
        return await self.ask(name, values, table=table, features=features)

    async def lend(self, *, blocking: bool) -> Lent:
        """A connection for a handler, in a transaction that has begun."""
        return await self.lending.lend(self._url, blocking=blocking)

    # --- what is there ----------------------------------------------------------------------------------------------

    async def _detect(self) -> Layout | None:
        [rows] = await self.run([(_DETECT, {"schema": text(bare(self.name))})])
        columns = {table: frozenset(names) for table, names in rows}
        if "version" not in columns:
            return None
        has_clock = columns.pop("job_now()", None) is not None
        read = statement("version", f"SELECT version FROM {identifier(self.name)}.version")  # noqa: S608 a checked name
        [found] = await self.run([(read, {})])
        if not found:
            return None
        version = int(found[0][0])
        check_version(self.name, version)
        check_columns(self.name, version, columns)
        return Layout(self.name, version, columns, has_clock)

    async def _side_exists(self) -> bool:
        [[(there,)]] = await self.run([self._side_call()])
        return bool(there)

    def _side_call(self) -> Call:
        return _SIDE, {"table": text(f"{self.layout.side}.log")}

    async def find_side(self) -> bool:
        """Whether jobwire's own schema is there; another process may have made it since the last look."""
        if not self.has_side:
            self.has_side = await self._side_exists()
        return self.has_side

    async def need_side(self) -> None:
        """Make jobwire's own schema, if it is not there. Raises what the server says if it may not be made."""
        if self.has_side:
            return
        async with self._siding:
            if await self.find_side():
                return
            script = source("side").format(side=self.layout.side)
            try:
                async with self.wire() as wire:
                    await wire.script(script)
            except Refused as error:
                if error.sqlstate not in DUPLICATE_OBJECT:
                    raise
            self.has_side = True

    async def try_side(self) -> bool:
        """The same for a worker, which can do without: whether the schema is there."""
        try:
            await self.need_side()
        except JobwireError as error:
            _log.warning("no schema %s: pause, rate limits, progress and logs are off (%s)", self.layout.side, error)
            return False
        return True

    def features(self, *more: str) -> tuple[str, ...]:
        return (*more, "side") if self.has_side else more
