"""A connection that sends prepared statements in pipelines.

psycopg makes the connection. Statements then go straight through its libpq layer, since a batch needs one thing only:
several prepared statements and one Sync, in one round trip, which PostgreSQL runs as one transaction. Measured on jobs
that do nothing: half of the time that cursors in pipeline mode take. Values are sent as text, in both directions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import pq

from jobwire.backends.idle_socket import has_input
from jobwire.backends.pgboss.address import parameters
from jobwire.backends.pgboss.connection.errors import failure
from jobwire.backends.pgboss.connection.rows import Row, rows_of
from jobwire.errors import InvalidOption
from jobwire.redact import redact

Value = bytes | None

# PostgreSQL keeps the plans of prepared statements, and a plan made for a small table is far too slow once the table
# has grown. Every statement of this backend is meant to walk an index in its order, so other ways are switched off, and
# rows cost more than pages: without statistics the planner takes a queue's name to be as selective as a job's id
# (measured on 5,000 jobs: 2.7k jobs/s with the default costs, 11k with these).
_SETTINGS = (
    "SET client_encoding TO 'UTF8'; SET timezone TO 'UTC'; "
    # With 'serializable' as a database's default, workers beside each other would refuse each other's statements.
    "SET default_transaction_isolation TO 'read committed'; "
    "SET datestyle TO 'ISO'; SET client_min_messages TO warning; SET jit TO off; "
    "SET enable_seqscan TO off; SET enable_bitmapscan TO off; SET enable_sort TO off; SET enable_mergejoin TO off; "
    "SET cpu_tuple_cost TO 1; SET cpu_index_tuple_cost TO 0.5; SET cpu_operator_cost TO 0.0001; "
    "SET random_page_cost TO 0.01; SET seq_page_cost TO 0.01; "
    "SET plan_cache_mode TO force_generic_plan; SET idle_in_transaction_session_timeout TO 0; "
    # A statement whose caller has given up ends by itself, where the server can do that: PostgreSQL 14, not on Windows.
    "DO $$ BEGIN PERFORM set_config('client_connection_check_interval', '2s', false); "
    "EXCEPTION WHEN others THEN NULL; END $$"
)
_PLAN_FOR = 5.0
CALL_WITHIN = 15.0
"""Seconds without any data from or to the server after which a call is given up. A large batch that is still being sent
counts as data."""
LONG_CALL_WITHIN = 300.0
"""The same for statements that may have a whole table to go through."""


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement with a unique name. Each connection prepares it when it first runs it."""

    name: bytes
    text: bytes
    values: tuple[str, ...] = ()
    """The names of its values, in the order of `$1`, `$2` and so on."""


Call = tuple[Statement, Mapping[str, Value]]


class PipelinedConnection:
    """A connection to PostgreSQL that one caller at a time may use."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], where: str) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._where = where
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        self._prepared: dict[bytes, tuple[bytes, float]] = {}
        self._turns = 0
        self._arrival: asyncio.Future[None] | None = None
        self._notified: Callable[[str, str], None] | None = None
        self._lost: Exception | None = None
        self._within = CALL_WITHIN
        self.epoch = 0
        """The number of resets of its pool before it was made."""
        self.taken = 0.0
        """The time at which its pool last gave it to a caller."""
        self._pg.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._readable)

    @classmethod
    async def connect(cls, url: str, where: str) -> PipelinedConnection:
        """Connects and sets up the session. Raises within the timeout for connecting plus that of a call."""
        try:
            connection = await psycopg.AsyncConnection.connect(**parameters(url), autocommit=True)
        except psycopg.ProgrammingError as error:  # the driver does not understand the URL
            raise InvalidOption("url", where, redact(str(error)).strip()) from None
        except (psycopg.Error, OSError) as error:
            raise failure(where, str(error), getattr(error, "sqlstate", None) or "") from None
        try:
            async with asyncio.timeout(CALL_WITHIN):
                await connection.execute(_SETTINGS)
        except psycopg.Error as error:
            connection.pgconn.finish()
            raise failure(where, str(error), error.sqlstate or "") from None
        except TimeoutError:
            connection.pgconn.finish()
            raise failure(where, _silence(CALL_WITHIN)) from None
        except BaseException:  # given up while it was being set up
            connection.pgconn.finish()
            raise
        return cls(connection, where)

    @property
    def broken(self) -> bool:
        return self._lost is not None or self._pg.status != pq.ConnStatus.OK

    @property
    def closing(self) -> bool:
        """True if the server has closed it while it was idle. Also true if it has sent a message: usually that it is
        about to close the connection."""
        return has_input(self._socket)

    @property
    def silent(self) -> bool:
        """True if a call on it was given up because the server did not answer."""
        return isinstance(self._lost, TimeoutError)

    @property
    def reusable(self) -> bool:
        """True if another caller may use it: it works, and no transaction was left open on it."""
        return not self.broken and self._is_idle()

    def close(self) -> None:
        """Closes the socket at once. The server rolls back or commits a statement that is under way."""
        self._leave_loop()
        self._lost = self._lost or ConnectionError("closed")
        self._pg.finish()
        self._wake()

    async def run(self, calls: Sequence[Call], within: float = CALL_WITHIN) -> list[list[Row]]:
        """Runs the statements in order as one transaction. Returns the rows of each. If one fails, none has happened.

        A call that is given up, by its deadline or by its caller, leaves the connection closed.
        """
        self._within = within
        try:
            return await self._run(calls)
        except psycopg.Error as error:
            self.close()
            raise failure(self._where, str(error)) from None
        except BaseException:
            if not self._is_idle():
                self.close()
            raise

    async def _run(self, calls: Sequence[Call]) -> list[list[Row]]:
        pg = self._pg
        fresh: list[bytes | None] = []
        for statement, values in calls:
            fresh += self._prepare(statement)
            pg.send_query_prepared(self._prepared[statement.name][0], [values[name] for name in statement.values])
            fresh.append(None)
        pg.pipeline_sync()
        await self._flush()
        answers: list[list[Row]] = []
        fault: pq.abc.PGresult | None = None
        index = 0
        while True:
            while pg.is_busy():
                await self._arrived()
            result = pg.get_result()
            if result is None:
                continue
            status = result.status
            if status == pq.ExecStatus.PIPELINE_SYNC:
                break
            name = fresh[index]
            index += 1
            if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                if name is None:
                    answers.append(rows_of(result))
                continue
            if name is not None:
                self._prepared.pop(name, None)
            if status == pq.ExecStatus.FATAL_ERROR and fault is None:
                fault = result
        if fault is not None:
            raise _fault(self._where, fault)
        return answers

    def _prepare(self, statement: Statement) -> list[bytes]:
        """Prepares the statement, again if its plan is old: the table may have grown since. Returns the name of the
        statement once for each message that was sent."""
        known = self._prepared.get(statement.name)
        now = self._loop.time()
        if known is not None and now < known[1]:
            return []
        self._turns += 1
        name = b"%b_%d" % (statement.name, self._turns)
        self._prepared[statement.name] = (name, now + _PLAN_FOR)
        self._pg.send_prepare(name, statement.text)
        if known is None:
            return [statement.name]
        self._pg.send_query_params(b"DEALLOCATE %b" % known[0], None)  # libpq before 17 has no message for it
        return [statement.name, statement.name]

    async def script(self, text: str) -> None:
        """Runs several statements without values as one transaction, as the simple protocol does."""
        self._within = LONG_CALL_WITHIN
        self._pg.exit_pipeline_mode()
        try:
            self._pg.send_query(text.encode())
            await self._flush()
            fault: pq.abc.PGresult | None = None
            while True:
                while self._pg.is_busy():
                    await self._arrived()
                result = self._pg.get_result()
                if result is None:
                    break
                if result.status == pq.ExecStatus.FATAL_ERROR:
                    fault = fault or result
            if fault is not None:
                raise _fault(self._where, fault)
            self._pg.enter_pipeline_mode()
        except psycopg.Error as error:
            self.close()
            raise failure(self._where, str(error)) from None
        except BaseException:
            self.close()
            raise

    # --- notifications ----------------------------------------------------------------------------------------------

    def listen(self, notified: Callable[[str, str], None]) -> None:
        """Calls `notified` with channel and payload of every notification, and with two empty texts when the connection
        is lost."""
        self._notified = notified

    def _notify(self, notify: pq.PGnotify) -> None:
        if self._notified is not None:
            self._notified(notify.relname.decode(), notify.extra.decode(errors="replace"))

    # --- the socket -------------------------------------------------------------------------------------------------

    def _is_idle(self) -> bool:
        return (
            self._lost is None and self._pg.transaction_status == pq.TransactionStatus.IDLE and not self._pg.is_busy()
        )

    async def _flush(self) -> None:
        while self._pg.flush():
            self._loop.add_writer(self._socket, self._wake)
            try:
                await self._arrived()
            finally:
                if self._socket >= 0:
                    self._loop.remove_writer(self._socket)

    async def _arrived(self) -> None:
        if self._lost is not None:
            raise psycopg.OperationalError(str(self._lost))
        self._arrival = self._loop.create_future()
        deadline = self._loop.call_later(self._within, self._give_up)
        try:
            await self._arrival
        finally:
            deadline.cancel()
            self._arrival = None
        if self._lost is not None:
            raise psycopg.OperationalError(str(self._lost))

    def _give_up(self) -> None:
        self._lost = self._lost or TimeoutError(_silence(self._within))
        self._wake()

    def _readable(self) -> None:
        try:
            self._pg.consume_input()
            while (notify := self._pg.notifies()) is not None:
                self._notify(notify)
        except psycopg.Error as error:
            self._lost = error
            self._leave_loop()
            if self._notified is not None:
                self._notified("", "")
        self._wake()

    def _leave_loop(self) -> None:
        """Stops watching the socket. This must happen at once when the connection is lost: the driver has closed the
        socket then, and the next one that the process opens may get its number."""
        if self._socket >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket = -1

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


def _silence(within: float) -> str:
    return f"no answer within {within:g} s"


def _fault(where: str, result: pq.abc.PGresult) -> Exception:
    code = result.error_field(pq.DiagnosticField.SQLSTATE)
    words = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    detail = result.error_field(pq.DiagnosticField.CONSTRAINT_NAME)
    text = words.decode(errors="replace")
    if detail is not None and detail.decode() not in text:
        text = f"{text} ({detail.decode()})"
    return failure(where, text, code.decode() if code else "XX000")
