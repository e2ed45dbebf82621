"""Creates the tables or upgrades them in place.

Each migration is a file, `migrations/NNNN_name.sql`, and runs in a transaction of its own that also changes the version
row. The transaction holds an advisory lock of the schema, so of several programs that start at once each migration is
run by one. A program that dies leaves the migrations that were committed, and the next run goes on from there.

The same files adopt the tables of an older application: they add what is missing, bring values that break a rule to
the nearest legal one, and count them by kind. No row is deleted, except repeated listings of one channel in one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql

from jobwire.campaigns.database import check_schema
from jobwire.errors import StoreRefused, StoreUnavailable
from jobwire.redact import redact

Connection = psycopg.AsyncConnection[Any]

VERSION_TABLE = "jobwire_campaigns_version"
_LOCK = 1_785_684_599
"""The first half of the advisory lock's key. The second is a hash of the schema's name."""
_LOCK_WAIT = "10s"
"""A table that is in use for longer is left alone: programs that queue behind a waiting ALTER TABLE would wait too."""
_NEEDED = {
    "users": ("id",),
    "batches": ("id",),
    "templates": ("id", "content"),
    "channels": ("id", "username"),
    "batch_channels": ("batch_id", "channel_id"),
    "campaigns": ("id", "status"),
    "jobs": ("id", "campaign_id", "channel_id", "status"),
}
"""The tables, and the columns by which an existing one is recognised."""
_TEXT_TYPES = ("text", "character varying")


class NewerSchema(StoreRefused):
    """The tables were upgraded by a newer release of jobwire."""

    def __init__(self, schema: str, found: int, known: int) -> None:
        super().__init__(
            f"the campaign tables in schema {schema!r} have version {found}; this jobwire supports up to {known}: "
            "upgrade jobwire here"
        )
        self.schema = schema
        self.found = found
        self.known = known

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.schema, self.found, self.known)


class NotInstalled(StoreRefused):
    """The campaign tables do not exist, or are those of an older release."""

    def __init__(self, schema: str, found: int, needed: int) -> None:
        words = f"have version {found} and this jobwire needs {needed}" if found else "do not exist"
        super().__init__(f"the campaign tables in schema {schema!r} {words}: run `jobwire campaign init`")
        self.schema = schema
        self.found = found
        self.needed = needed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.schema, self.found, self.needed)


class NotOurTable(StoreRefused):
    """A table has the name of one of ours and belongs to something else."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A kind of value in an existing table that broke a rule, and what was done."""

    count: int
    found: str
    done: str

    def __str__(self) -> str:
        return f"{self.found}: {self.count:,}; {self.done}"


@dataclass(frozen=True, slots=True)
class InitReport:
    """The result of `init`."""

    schema: str
    version_before: int
    version: int
    adopted: tuple[Adopted, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    """Settings of queues of another program that differ from ours and can't be changed."""

    def __str__(self) -> str:
        if self.version_before == self.version:
            head = f"schema {self.schema!r} is up to date (version {self.version})"
        else:
            head = f"schema {self.schema!r} was upgraded from version {self.version_before} to {self.version}"
        return "\n".join([head, *map(str, self.adopted), *self.notes])


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """Returns the number and the text of each migration, in order."""
    folder = files(__package__ or "").joinpath("migrations")
    named = sorted((file.name, file) for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple((int(name.partition("_")[0]), file.read_text(encoding="utf-8")) for name, file in named)


async def init(connection: Connection, *, schema: str = "public") -> InitReport:
    """Creates the campaign tables in the schema, or upgrades them in place. Returns what was done.

    It is safe to run at any time and by several programs at once. A second run changes nothing. Existing tables of the
    same shape are adopted with their rows; unrelated tables of the same names are refused with NotOurTable.
    """
    return await migrate(connection, check_schema(schema), migrations()[-1][0])


async def migrate(connection: Connection, schema: str, until: int) -> InitReport:
    """Runs the migrations up to the given number."""
    before = reached = await version(connection, schema)
    adopted: list[Adopted] = []
    try:
        for number, text in migrations():
            if before < number <= until:
                adopted += await _run(connection, schema, number, text)
                reached = number
    except psycopg.errors.LockNotAvailable as error:
        raise StoreUnavailable(
            f"a campaign table in schema {schema!r} is in use for longer than {_LOCK_WAIT}; run init again later"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreRefused(f"the user may not create or change tables in schema {schema!r}: {error}") from error
    except psycopg.OperationalError:
        raise
    except psycopg.DatabaseError as error:
        words = " ".join(redact(str(error)).split())
        raise StoreRefused(f"the tables in schema {schema!r} stay at version {reached}: {words}") from error
    return InitReport(schema, before, max(before, until), tuple(adopted))


async def version(connection: Connection, schema: str) -> int:
    """Returns the version of the tables, 0 if they were never installed. Raises NewerSchema."""
    table = sql.Identifier(schema, VERSION_TABLE)
    found = await connection.execute("SELECT to_regclass(%s)", [table.as_string()])
    row = await found.fetchone()
    if row is None or row[0] is None:
        return 0
    row = await (await connection.execute(sql.SQL("SELECT version FROM {}").format(table))).fetchone()
    number = row[0] if row else 0
    if number > migrations()[-1][0]:
        raise NewerSchema(schema, number, migrations()[-1][0])
    return number


async def require_tables(connection: Connection, schema: str) -> None:
    """Raises NotInstalled or NewerSchema unless the tables are those of this release."""
    found = await version(connection, schema)
    if found < migrations()[-1][0]:
        raise NotInstalled(schema, found, migrations()[-1][0])


async def _run(connection: Connection, schema: str, number: int, text: str) -> list[Adopted]:
    async with connection.transaction(), connection.cursor() as cursor:
        await cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, schema])
        if await version(connection, schema) >= number:
            return []  # run by another program in the meantime
        # Beyond this transaction the caller's settings hold, also if it is a part of a larger one.
        saved = await (await cursor.execute(
            "SELECT current_setting('search_path'), current_setting('lock_timeout'), "
            "current_setting('client_min_messages')"
        )).fetchone()  # fmt: skip
        await cursor.execute(
            "SELECT set_config('lock_timeout', %s, true), set_config('client_min_messages', 'warning', true)",
            [_LOCK_WAIT],
        )
        await _prepare(cursor, schema)
        await cursor.execute(text.encode())
        await cursor.execute(f"UPDATE {VERSION_TABLE} SET version = %s", [number])  # noqa: S608 # pyright: ignore[reportArgumentType] our own name
        await cursor.execute("SELECT count, found, done FROM pg_temp.adopted WHERE count > 0 ORDER BY place")
        adopted = [Adopted(*row) for row in await cursor.fetchall()]
        await cursor.execute("DROP TABLE pg_temp.adopted")
        await cursor.execute(
            "SELECT set_config('search_path', %s, true), set_config('lock_timeout', %s, true), "
            "set_config('client_min_messages', %s, true)",
            saved,
        )
        return adopted


async def _prepare(cursor: psycopg.AsyncCursor[Any], schema: str) -> None:
    """Makes the schema and the version row if they are missing, and checks tables that exist."""
    await cursor.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema])
    name = sql.Identifier(schema)
    if await cursor.fetchone() is None:
        await cursor.execute(sql.SQL("CREATE SCHEMA {}").format(name))
    # Temporary tables come last: they must not hide ours.
    await cursor.execute(sql.SQL("SET LOCAL search_path TO {}, pg_temp").format(name))
    await cursor.execute(
        "CREATE TEMPORARY TABLE adopted (count bigint, found text, done text, place serial) ON COMMIT DROP"
    )
    await cursor.execute("SELECT to_regclass(%s)", [sql.Identifier(schema, VERSION_TABLE).as_string()])
    row = await cursor.fetchone()
    if row is None or row[0] is None:
        await _check_existing(cursor, schema)
        await cursor.execute(
            f"CREATE TABLE {VERSION_TABLE} "  # pyright: ignore[reportArgumentType] our own name
            "(only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), version integer NOT NULL)"
        )
        await cursor.execute(f"INSERT INTO {VERSION_TABLE} (version) VALUES (0)")  # noqa: S608 # pyright: ignore[reportArgumentType] our own name


async def _check_existing(cursor: psycopg.AsyncCursor[Any], schema: str) -> None:
    await cursor.execute(
        "SELECT c.relname, c.relkind::text, a.attname, format_type(a.atttypid, NULL) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace "
        "LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped "
        "WHERE n.nspname = %s AND c.relname = ANY(%s)",
        [schema, list(_NEEDED)],
    )
    tables: dict[str, dict[str, str]] = {}
    for table, kind, column, type_name in await cursor.fetchall():
        if kind not in ("r", "p"):
            raise NotOurTable(f"{table} in schema {schema!r} is not a table; choose another schema")
        tables.setdefault(table, {})[column] = type_name
    for table, columns in tables.items():
        for needed in _NEEDED[table]:
            found = columns.get(needed) or columns.get(_camel(needed))
            if found is None:
                raise NotOurTable(
                    f"table {table} in schema {schema!r} is not one of a campaign application: it has no column "
                    f"{needed}; choose another schema"
                )
            if needed.endswith("id") and found not in _TEXT_TYPES:
                raise NotOurTable(
                    f"column {needed} of table {table} in schema {schema!r} is of type {found}, and ids must be text; "
                    "choose another schema"
                )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
