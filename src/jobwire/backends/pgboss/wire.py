"""One connection, spoken to in pipelines of prepared statements.

psycopg makes the connection; the conversation goes straight through its libpq layer, since a batch needs one thing
only: several prepared statements and one Sync, in one round trip, which PostgreSQL runs as one transaction. Measured
on a no-op drain: half of the time that cursors in pipeline mode take. Values travel as text, in both directions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
import psycopg
from psycopg import pq

from jobwire.backends.pgboss.failure import failure
from jobwire.errors import InvalidOption
from jobwire.urls import redact

Value = bytes | None
Row = tuple[Any, ...]

# Plans of prepared statements are kept, and one made for a small table is poison when it has grown. The statements of
# this backend are all meant to walk an index in its order, so what leads elsewhere is switched off, and rows are priced
# above pages: without statistics the planner takes a queue's name to be as good as a job's id (measured on 5,000 jobs:
# 2.7k jobs/s with its own prices, 11k with these).
_SETTINGS = (
    "SET timezone TO 'UTC'; SET datestyle TO 'ISO'; SET client_min_messages TO warning; SET jit TO off; "
    "SET enable_seqscan TO off; SET enable_bitmapscan TO off; SET enable_sort TO off; SET enable_mergejoin TO off; "
    "SET cpu_tuple_cost TO 1; SET cpu_index_tuple_cost TO 0.5; SET cpu_operator_cost TO 0.0001; "
    "SET random_page_cost TO 0.01; SET seq_page_cost TO 0.01; "
    "SET plan_cache_mode TO force_generic_plan; SET idle_in_transaction_session_timeout TO 0"
)
_PLAN_FOR = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """A statement with a name of its own, prepared on each connection that first meets it."""

    name: bytes
    text: bytes
    values: tuple[str, ...] = ()
    """The names of its values, in the order of their numbers."""


Call = tuple[Statement, Mapping[str, Value]]


class Wire:
    """A connection that one caller at a time may use."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], where: str) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._where = where
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        self._prepared: dict[bytes, tuple[bytes, float]] = {}
        self._turns = 0
        self._arrival: asyncio.Future[None] | None = None
        self._told: Callable[[str, str], None] | None = None
        self._lost: Exception | None = None
        self._pg.enter_pipeline_mode()
        self._loop.add_reader(self._socket, self._readable)

    @classmethod
    async def connect(cls, url: str, where: str) -> Wire:
        try:
            connection = await psycopg.AsyncConnection.connect(
                url, autocommit=True, connect_timeout=10, fallback_application_name="jobwire"
            )
        except psycopg.ProgrammingError as error:  # the driver does not understand the URL
            raise InvalidOption("url", where, redact(str(error)).strip()) from None
        except (psycopg.Error, OSError) as error:
            raise failure(where, str(error), getattr(error, "sqlstate", None) or "") from None
        try:
            await connection.execute(_SETTINGS)
        except psycopg.Error as error:
            connection.pgconn.finish()
            raise failure(where, str(error), error.sqlstate or "") from None
        except BaseException:  # given up while it was being set up
            connection.pgconn.finish()
            raise
        return cls(connection, where)

    @property
    def broken(self) -> bool:
        return self._lost is not None or self._pg.status != pq.ConnStatus.OK

    def close(self) -> None:
        """Leave without a word; a statement under way is rolled back or committed by the server."""
        if self._socket >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket = -1
        self._lost = self._lost or ConnectionError("closed")
        self._pg.finish()
        self._wake()

    async def run(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Run the statements in order as one transaction; the rows of each. If one fails, none has happened."""
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
        place = 0
        while True:
            while pg.is_busy():
                await self._arrived()
            result = pg.get_result()
            if result is None:
                continue
            status = result.status
            if status == pq.ExecStatus.PIPELINE_SYNC:
                break
            name = fresh[place]
            place += 1
            if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                if name is None:
                    answers.append(_rows(result))
                continue
            if name is not None:
                self._prepared.pop(name, None)
            if status == pq.ExecStatus.FATAL_ERROR and fault is None:
                fault = result
        if fault is not None:
            raise _fault(self._where, fault)
        return answers

    def _prepare(self, statement: Statement) -> list[bytes]:
        """Prepare the statement, or prepare it anew if its plan is old: the table may have grown since."""
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
        """Run several statements without values as one transaction, as the simple protocol does."""
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

    def listen(self, told: Callable[[str, str], None]) -> None:
        """Call back with channel and payload of every notification, and with two empty texts when the line is cut."""
        self._told = told

    def _heard(self, notify: pq.PGnotify) -> None:
        if self._told is not None:
            self._told(notify.relname.decode(), notify.extra.decode(errors="replace"))

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
        try:
            await self._arrival
        finally:
            self._arrival = None
        if self._lost is not None:
            raise psycopg.OperationalError(str(self._lost))

    def _readable(self) -> None:
        try:
            self._pg.consume_input()
            while (notify := self._pg.notifies()) is not None:
                self._heard(notify)
        except psycopg.Error as error:
            self._lost = error
            self._loop.remove_reader(self._socket)
            if self._told is not None:
                self._told("", "")
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)


def _fault(where: str, result: pq.abc.PGresult) -> Exception:
    code = result.error_field(pq.DiagnosticField.SQLSTATE)
    words = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    detail = result.error_field(pq.DiagnosticField.CONSTRAINT_NAME)
    text = words.decode(errors="replace")
    if detail is not None and detail.decode() not in text:
        text = f"{text} ({detail.decode()})"
    return failure(where, text, code.decode() if code else "XX000")


def _flag(raw: bytes) -> bool:
    return raw == b"t"


def _moment(raw: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(raw.decode())
    except ValueError:  # infinity, or a year that Python has no number for
        return None


def _whole_numbers(raw: bytes) -> list[int | None]:
    inside = raw[1:-1]
    return [None if part == b"NULL" else int(part) for part in inside.split(b",")] if inside else []


# By the number of the type; what is not here (text, uuid, enums) is a text. JSON stays as it is: its reader decides.
_READERS: dict[int, Callable[[bytes], Any]] = {
    16: _flag,
    20: int,
    21: int,
    23: int,
    700: float,
    701: float,
    1700: float,
    1184: _moment,
    1007: _whole_numbers,
    114: orjson.loads,
    3802: orjson.loads,
}


def _rows(result: pq.abc.PGresult) -> list[Row]:
    count = result.ntuples
    if not count:
        return []
    value = result.get_value
    rows = range(count)
    columns: list[list[Any]] = []
    for column in range(result.nfields):
        read = _READERS.get(result.ftype(column), bytes.decode)
        columns.append([None if (raw := value(row, column)) is None else read(raw) for row in rows])
    return list(zip(*columns, strict=True))


# --- values ----------------------------------------------------------------------------------------------------------


def text(value: str | None) -> Value:
    return None if value is None else value.encode()


def number(value: float | None) -> Value:
    return None if value is None else str(value).encode()


def flag(value: bool | None) -> Value:
    return None if value is None else (b"true" if value else b"false")


def moment(value: datetime | None) -> Value:
    return None if value is None else value.isoformat().encode()


def plain_list(values: Sequence[object]) -> bytes:
    """An array of ids, numbers or flags: values that hold no comma, quote or brace."""
    return ("{" + ",".join("NULL" if value is None else str(value) for value in values) + "}").encode()


def text_list(values: Sequence[str | None]) -> bytes:
    """An array of any texts."""
    return ("{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}").encode()


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
