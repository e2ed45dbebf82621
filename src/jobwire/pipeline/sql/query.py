"""Queries in DuckDB over the published tables of a lake. Nothing is written, and nothing but the lake is read.

DuckDB itself has no access to files, to the network or to Python's variables, and its settings are locked before the
query is seen. The tables are Arrow's. A query that changes data changes a database in memory that ends with it; such
statements are refused all the same, since they can't do what they say.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from jobwire.errors import JobwireError, MissingExtra
from jobwire.pipeline.sql.names import RUNS, published
from jobwire.pipeline.sql.scan import scan, scan_runs

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

ROWS_AT_A_TIME = 10_000
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "4GB",
    "errors_as_json": "true",
}
_JSON = '{"exception_type":'
"""The beginning of DuckDB's errors. Arrow, which reads the answer, puts its own words around them."""
_NOT_UNDERSTOOD = {"Parser", "Syntax", "Binder", "Catalog"}


class QueryError(JobwireError):
    """The query can't be understood: its syntax is wrong, or it names something that the lake does not have."""


def query(lake: str, text: str) -> pa.Table:
    """Returns the answer to a query over the tables of the lake at a root, without Spark.

    `query("lake", "select queue, count(*) as jobs from silver_jobs group by all")`
    """
    with answer(lake, text) as batches:
        return batches.read_all()


@contextmanager
def answer(lake: str, text: str) -> Generator[pa.RecordBatchReader]:
    """Yields the answer to a query in batches, as they are computed."""
    with _database() as database, _in_words(text, [*(tables := published(lake)), RUNS]):
        _check(database, text)
        # Opening a table takes time. Those that the text does not name can't be asked for, but perhaps listed.
        named = [name for name in tables if name in text.lower()]
        for name in named or tables:
            database.register(name, scan(lake, tables[name]))
        if RUNS in text.lower():
            database.register(RUNS, scan_runs(lake))
        yield _computed(database, text)


@contextmanager
def _database() -> Generator[DuckDBPyConnection]:
    try:
        import duckdb  # noqa: PLC0415 an extra
    except ImportError:
        raise MissingExtra("SQL", "sql") from None
    with duckdb.connect(":memory:", config=_CLOSED) as database:
        database.execute("set timezone = 'UTC'")
        database.execute("set lock_configuration = true")
        yield database


def _check(database: DuckDBPyConnection, text: str) -> None:
    """Refuses anything but one query."""
    from duckdb import StatementType  # noqa: PLC0415 an extra

    if not _is_utf8(text):
        raise QueryError("the query is not text in UTF-8")
    statements = database.extract_statements(text)
    if len(statements) != 1:
        raise QueryError(f"write one query, not {len(statements)} statements" if statements else "the query is empty")
    [statement] = statements
    # A pivot is several statements, the last of which is a query.
    if statement.type not in (StatementType.SELECT, StatementType.EXPLAIN, StatementType.MULTI):
        raise QueryError(f"only queries are run here, and this is a statement of the kind {statement.type.name}")
    if statement.named_parameters:
        names = ", ".join(f"${name}" for name in sorted(statement.named_parameters))
        raise QueryError(f"the query has parameters without values: {names}")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _computed(database: DuckDBPyConnection, text: str) -> pa.RecordBatchReader:
    """Computes the answer up to its first rows, in another thread: in this one, Ctrl-C would wait for DuckDB."""
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(lambda: _run(database, text).to_arrow_reader(ROWS_AT_A_TIME))
        try:
            return answer.result()
        except KeyboardInterrupt:
            database.interrupt()
            raise


def _run(database: DuckDBPyConnection, text: str) -> DuckDBPyRelation:
    """Runs the query. A relation is computed as it is read, but an error in making one has no position. The same query
    as a statement fails at the same place, with the position."""
    from duckdb import Error  # noqa: PLC0415 an extra

    try:
        return database.sql(text)
    except Error:
        database.execute(text)
        raise


@contextmanager
def _in_words(text: str, tables: list[str]) -> Generator[None]:
    """Turns an error of DuckDB into one sentence of ours, with its position in the query."""
    import duckdb  # noqa: PLC0415 an extra

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "interrupted" in str(error):
            raise KeyboardInterrupt from error
        if not isinstance(error, duckdb.Error) and _JSON not in str(error):
            raise  # not of DuckDB: a file of the lake is missing, or the reader of the answer has gone
        found = _fields(str(error))
        kind, message = found.get("exception_type", ""), " ".join(found["exception_message"].split())
        where = _position(text, found.get("position"))
        if kind in _NOT_UNDERSTOOD:
            if found.get("type") == "Table":
                message = f"there is no table {found['name']} among {', '.join(tables)}"
            raise QueryError(f"the query is not understood{where}: {message}") from error
        if kind == "Permission":
            raise JobwireError(f"a query reads the tables of the lake and nothing else{where}: {message}") from error
        raise JobwireError(f"the query failed{where}: {message}") from error


def _fields(message: str) -> Mapping[str, str]:
    """Returns the parts of an error's message, which is JSON after its kind."""
    start = message.find(_JSON)
    try:
        return json.JSONDecoder().raw_decode(message[start:])[0] if start >= 0 else {"exception_message": message}
    except ValueError:
        return {"exception_message": message}


def _position(text: str, offset: str | None) -> str:
    """Returns where in the query an error is, in lines and characters from 1."""
    if offset is None or not offset.isdigit():
        return ""
    before = text.encode()[: int(offset)].decode(errors="ignore")
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f" at line {line}, column {column}"
