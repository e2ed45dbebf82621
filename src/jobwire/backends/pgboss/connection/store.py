"""A PostgreSQL server with a pg-boss schema: its connections, its columns, and the schema of jobwire's side data."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence

from psycopg.pq import Conninfo

from jobwire import embedded
from jobwire.backends.pgboss.connection import schema_install, side_version
from jobwire.backends.pgboss.connection.pipelined import LONG_CALL_WITHIN, Call, PipelinedConnection, Value
from jobwire.backends.pgboss.connection.pool import Pool
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.schema import (
    NEWEST,
    Layout,
    bare,
    channel,
    check_columns,
    check_version,
    identifier,
    own_channel,
)
from jobwire.backends.pgboss.connection.shared import Shared, join, leave
from jobwire.backends.pgboss.connection.side_version import PgSideVersion
from jobwire.backends.pgboss.connection.statements import Statements, source, statement
from jobwire.backends.pgboss.connection.values import text
from jobwire.backends.pgboss.work.handler_connections import Lending, Lent
from jobwire.backends.pgboss.work.wakeup import Wakeup
from jobwire.backends.side_version import bring_up_to_date
from jobwire.errors import JobwireError, NewerSideData, NotSupported, StoreUnavailable
from jobwire.urls import Address, check_driver_options

_log = logging.getLogger("jobwire.pgboss")

_CLEANING = ("clean", "delete_old", "drain", "obliterate", "orphans", "redrive", "retained", "side_orphans")
_LONG = frozenset({"counts", "count_queues", *_CLEANING})
"""Statements that may read a whole table, and so get a longer timeout."""
_DETECT = statement("detect", source("detect"))
_SIDE = statement("side_exists", "SELECT to_regclass(:table) IS NOT NULL")
_MAY_CREATE = statement("may_create", "SELECT has_database_privilege(current_database(), 'CREATE')")


class Store:
    """The server as all parts of one backend use it. Connections are made when they are needed."""

    def __init__(self, address: Address, *, side_is_known: bool = False) -> None:
        check_driver_options(address, {"ssl", *(one.keyword.decode() for one in Conninfo.get_defaults())})
        self.address = address
        self.name = address.options.get("schema", "pgboss")
        self.where = f"PostgreSQL at {address.redacted}"
        self.own_channel = text(own_channel(self.name))
        """The channel that wakes jobwire's workers only, as a value of a statement."""
        self.channels = {"channel": text(channel(self.name)), "own_channel": self.own_channel}
        """Both channels, pg-boss's and jobwire's own, as values of a statement."""
        self._statements: Statements | None = None
        self.has_side = False
        """True if the schema of side data exists and has this release's version."""
        self._side_is_known = side_is_known
        """True if the version of the side data has been checked already, as in a twin. A twin must not refuse to start:
        it extends leases of jobs that run already."""
        self.may_make_side = True
        """True if the role may create the schema of side data. If not, another role may have created it."""
        self._url = address.driver_url
        self._server: embedded.Server | None = None
        self._shared: Shared | None = None
        self.lending = Lending(self.where)
        self._opening = asyncio.Lock()
        self._making_side = asyncio.Lock()
        self.is_open = False

    @property
    def statements(self) -> Statements:
        if self._statements is None:
            raise StoreUnavailable(f"{self.where} is not open")
        return self._statements

    @property
    def is_empty(self) -> bool:
        """True if there is no schema. It was opened to be looked at, or it is not open."""
        return self._statements is None

    @property
    def layout(self) -> Layout:
        return self.statements.layout

    @property
    def shared(self) -> Shared:
        if self._shared is None:
            raise StoreUnavailable(f"the connection to {self.where} is closed")
        return self._shared

    @property
    def pool(self) -> Pool:
        return self.shared.pool

    @property
    def wakeup(self) -> Wakeup:
        return self.shared.wakeup

    async def open(self, *, look_only: bool = False) -> None:
        """Connects and reads what the schema holds. Makes the schema in an empty database, as Node does, unless it is
        only to be looked at."""
        async with self._opening:
            if self.is_open:
                return
            try:
                await self._connect(look_only)
            except BaseException:
                await self.close()
                raise
            self.is_open = True

    async def _connect(self, look_only: bool) -> None:
        if self.address.folder is not None and self._server is None:
            self._server = await asyncio.to_thread(embedded.postgres, self.address.folder)
            self._url = self._server.url
        self._shared = self._shared or join(self._url, self.where, self.name)
        layout = await self._detect()
        if layout is None and not look_only:
            async with self.connection() as connection:
                await schema_install.install_on(connection, self.name)
            layout = await self._detect()
        if layout is None:
            if look_only:
                return
            raise StoreUnavailable(f"{self.where} has no schema {self.name}, and it could not be made")
        if layout.is_newer:
            _log.warning(
                "schema %s has version %d, and this jobwire knows up to %d: workers run its jobs, and leave "
                "maintenance and schedules to Node pg-boss", self.name, layout.version, NEWEST,
            )  # fmt: skip
        self._side_is_known = self._side_is_known or look_only
        self._statements = Statements(layout)
        [[(has_side,)], [(self.may_make_side,)]] = await self.run([self._side_call(), (_MAY_CREATE, {})])
        if has_side:
            await self._use_side()

    async def close(self) -> None:
        self.is_open = False
        shared, self._shared = self._shared, None
        if shared is not None:
            await leave(shared)
        await self.lending.close()
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.close)

    async def reset(self) -> None:
        """Closes every connection: idle ones at once, the others when they are given back."""
        if self._shared is not None:
            self._shared.pool.reset()
            self._shared.wakeup.check()
        await self.lending.reset()

    # --- statements -------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncGenerator[PipelinedConnection]:
        """Yields a connection for the caller alone."""
        pool = self.pool
        connection = await pool.take()
        try:
            yield connection
        finally:
            pool.give(connection)

    async def run(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Runs the statements as one transaction in one round trip. Returns the rows of each. Raises StoreUnavailable
        if the server does not answer."""
        return await self.pool.run(calls)

    async def ask(
        self, name: str, /, values: Mapping[str, Value], *, table: str = "job", features: Sequence[str] = ()
    ) -> list[Row]:
        """Runs one statement and returns its rows."""
        call = (self.statements.get(name, table, self.features(*features)), values)
        [rows] = await self.pool.run([call], LONG_CALL_WITHIN if name in _LONG else None)
        return rows

    async def look(
        self, name: str, /, values: Mapping[str, Value], *, table: str = "job", features: Sequence[str] = ()
    ) -> list[Row]:
        """Runs one statement that reads jobs, and returns its rows. They include side data as soon as there is any.

        Another process may create the schema of side data and write to it after we have chosen the statement and before
        it runs. So the schema is looked for after the reading, in the same round trip, and the reading is repeated if
        the schema has appeared.
        """
        if not self.has_side:
            statement = self.statements.get(name, table, features)
            rows, [(has_side,)] = await self.run([(statement, values), self._side_call()])
            if not has_side:
                return rows
            await self._use_side()
        return await self.ask(name, values, table=table, features=features)

    async def lend(self, *, blocking: bool) -> Lent:
        """Returns a connection for a handler, in a transaction that has begun."""
        return await self.lending.lend(self._url, blocking=blocking)

    # --- the schemas ------------------------------------------------------------------------------------------------

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
        (number,), *_ = found
        version = int(number)
        check_version(self.name, version)
        check_columns(self.name, version, columns)
        return Layout(self.name, version, columns, has_clock)

    async def _side_exists(self) -> bool:
        [[(there,)]] = await self.run([self._side_call()])
        return bool(there)

    def _side_call(self) -> Call:
        return _SIDE, {"table": text(f"{self.layout.side}.log")}

    async def find_side(self) -> bool:
        """Returns True if the schema of side data exists. Another process may have made it since the last call."""
        if not self.has_side and await self._side_exists():
            await self._use_side()
        return self.has_side

    async def _use_side(self) -> None:
        """Begins to use the schema of side data, which exists. Raises NewerSideData if a newer release made it."""
        if not self._side_is_known:
            await bring_up_to_date(self.side_version(), side_version.STEPS)
        self.has_side = True

    def side_version(self) -> PgSideVersion:
        return PgSideVersion(self.layout, self.where, self.run, self._run_script)

    async def _run_script(self, script: str) -> None:
        async with self.connection() as connection:
            await connection.script(script)

    async def need_side(self) -> None:
        """Makes the schema of side data if it does not exist. Raises StoreRefused if the role may not create it."""
        if self.has_side:
            return
        async with self._making_side:
            if await self.find_side():
                return
            await self.side_version().make()
            await self._use_side()

    async def need_side_table(self, name: str) -> None:
        """Makes a table of side data that only some workers need, if it does not exist."""
        await self.need_side()
        [[(exists,)]] = await self.run([(_SIDE, {"table": text(f"{self.layout.side}.{name}")})])
        if not exists:
            await self.side_version().make_more(name)

    def check_side(self, feature: str) -> None:
        """Raises NotSupported if the feature needs the schema of side data, and that is missing and can't be made."""
        if not self.has_side and not self.may_make_side:
            raise NotSupported(
                "pgboss", f"{feature} without schema {self.layout.side}",
                "let a role that may create schemas in this database run a worker once, and grant this role its tables",
            )  # fmt: skip

    async def try_side(self) -> bool:
        """Makes the schema of side data for a worker, which can work without it. Returns True if the schema exists."""
        try:
            await self.need_side()
        except NewerSideData:
            raise
        except JobwireError as error:
            _log.warning(
                "schema %s can't be made (%s): the worker goes on without pause, rate limits, progress and logs",
                self.layout.side, error,
            )  # fmt: skip
            return False
        return True

    def features(self, *more: str) -> tuple[str, ...]:
        """Returns the features of a statement, with `side` if there is side data."""
        return (*more, "side") if self.has_side else more
