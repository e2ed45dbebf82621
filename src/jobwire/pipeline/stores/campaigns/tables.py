"""Reads a table of the campaigns' database in partitions: ranges of ids, which the primary key finds.

A row that can't be used as it is, such as one with a time that no calendar has, is read with the reason in `malformed`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files

import pyarrow as pa
from psycopg.sql import Identifier

from jobwire.campaigns.schema.install import VERSION_TABLE, NewerSchema, migrations
from jobwire.campaigns.states import CampaignStatus, JobStatus
from jobwire.errors import StoreRefused
from jobwire.pipeline.lake.campaign_schemas import CAMPAIGNS, CHANNELS, DELIVERIES
from jobwire.pipeline.lake.schemas import Columns
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.pipeline.stores.campaigns.address import settings_of
from jobwire.pipeline.stores.postgresio.database import Database
from jobwire.pipeline.stores.postgresio.id_ranges import IdRange, id_ranges
from jobwire.pipeline.stores.postgresio.times import faults, time_or_null
from jobwire.redact import redact_url

OLDEST = 4
"""The version of the tables from which on they have all columns that are read."""
REASON = r"^(?:[0-9]{3}: )?([A-Z][A-Z0-9_]*)(?::|\s\(|$)"
"""The code that an error begins with, perhaps after a number: `CHAT_WRITE_FORBIDDEN: Telegram: …`, or
`403: CHAT_WRITE_FORBIDDEN (caused by …)` as Node.js clients of Telegram write it."""
_OPEN = "j.status IN ('QUEUED', 'SENDING')"


@dataclass(frozen=True)
class _Table:
    name: str
    """Its name in the database."""
    columns: Columns
    statuses: Sequence[str] = ()
    """The states that a row can have."""

    @property
    def times(self) -> list[str]:
        return [name for name, kind in self.columns.fields if kind == "timestamp"]


_TABLES = {
    "campaigns": _Table("campaigns", CAMPAIGNS, list(CampaignStatus)),
    "deliveries": _Table("jobs", DELIVERIES, list(JobStatus)),
    "channels": _Table("channels", CHANNELS),
}


class CampaignTables:
    """The tables of one database."""

    def __init__(self, url: str, store: str) -> None:
        settings = settings_of(url)
        self._store = store
        self._schema = Identifier(settings.schema).as_string()
        where = f"PostgreSQL at {redact_url(settings.url)}"
        self._database = Database(settings.url, where, pooled=not settings.prepared)
        try:
            self._check_version(settings.schema)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._database.close()

    def plan(self, table: str, wanted: Wanted, parts: int, *, changed_from: datetime | None = None) -> list[IdRange]:
        """Returns about `parts` partitions of a table. With `changed_from`, they hold the deliveries that may have
        changed since then."""
        kept = _TABLES[table]
        return id_ranges(self._database, f"{self._schema}.{kept.name}", self._condition(wanted, changed_from), parts)

    def read(
        self, table: str, part: IdRange, wanted: Wanted, *, changed_from: datetime | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition in the table's columns."""
        kept = _TABLES[table]
        condition = self._condition(wanted, changed_from)
        for compared, bound in zip((">=", "<"), part, strict=True):
            if bound is not None:
                condition += f" AND j.id {compared} {self._database.literal(bound)}"
        query = _sql(table).format(
            schema=self._schema,
            condition=condition,
            reason=self._database.literal(REASON),
            malformed=_malformed(kept),
            **{time: time_or_null(time) for time in kept.times},
        )
        for batch in self._database.batches(query, kept.columns.without(["store"]).arrow):
            store = pa.repeat(self._store, batch.num_rows).cast(pa.string())
            yield pa.record_batch([store, *batch.columns], schema=kept.columns.arrow)

    def count(self, table: str) -> int:
        """Returns the number of rows of a table."""
        [(rows,)] = self._database.ask(f"SELECT count(*) FROM {self._schema}.{_TABLES[table].name}")  # noqa: S608 our own
        return rows

    def look(self) -> str:
        """Returns a text that differs after every change of a row: each gives it the number of a newer transaction."""
        figures = "count(*), sum(xmin::text::numeric)::text, max(xmin::text::bigint)"
        seen = [
            self._database.ask(f"SELECT {figures} FROM {self._schema}.{name}")  # noqa: S608 our own
            for name in ("jobs", "campaigns", "channels", "batches", "templates", "users")
        ]
        return hashlib.sha256(repr(seen).encode()).hexdigest()

    def _condition(self, wanted: Wanted, changed_from: datetime | None) -> str:
        """Returns the condition for rows of `jobs` that are wanted; of other tables all are."""
        literal = self._database.literal
        settled = "coalesce(j.sent_at, j.failed_at)"
        parts = ["true"]
        for bound, compared in ((wanted.created_from, ">="), (wanted.created_before, "<")):
            if bound is not None:
                parts.append(f"coalesce(j.created_at {compared} {literal(bound)}, true)")
        for bound, compared in ((wanted.finished_from, ">="), (wanted.finished_before, "<"), (changed_from, ">=")):
            if bound is not None:
                parts.append(f"({_OPEN} OR coalesce({settled} {compared} {literal(bound)}, true))")
        if changed_from is not None:
            # Messages of a campaign that does not run stay as they are. Those of a cancelled one wait without end.
            parts.append(
                f"NOT ({_OPEN} AND EXISTS (SELECT FROM {self._schema}.campaigns m WHERE m.id = j.campaign_id "
                f"AND m.status <> 'RUNNING' AND m.updated_at < {literal(changed_from)}))"
            )
        return " AND ".join(parts)

    def _check_version(self, schema: str) -> None:
        name = f"{self._schema}.{VERSION_TABLE}"
        [(found,)] = self._database.ask("SELECT to_regclass($1)::text", [name])
        versions = self._database.ask(f"SELECT version FROM {name}") if found else []  # noqa: S608 a quoted name
        version = versions[0][0] if versions else 0
        known = migrations()[-1][0]
        if version > known:
            raise NewerSchema(schema, version, known)
        if version < OLDEST:
            old = f"campaign tables of version {version}" if version else "no campaign tables"
            raise StoreRefused(
                f"{self._database.where} has {old} in schema {schema!r}: jobwire.campaigns.init creates and upgrades "
                "them. The URL of pg-boss queues begins with pgboss+postgresql://"
            )


@contextmanager
def campaign_tables(url: str, store: str) -> Generator[CampaignTables]:
    """Opens the tables for the time of the block."""
    tables = CampaignTables(url, store)
    try:
        yield tables
    finally:
        tables.close()


@cache
def _sql(name: str) -> str:
    text = files("jobwire.pipeline.stores.campaigns").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def _malformed(table: _Table) -> str:
    """Returns an expression for the reasons why a row can't be used as it is."""
    found = faults(table.times)
    if table.statuses:
        known = ", ".join(f"'{status}'" for status in table.statuses)
        found.append(f"CASE WHEN j.status NOT IN ({known}) THEN 'unknown status ' || j.status END")
    return f"nullif(concat_ws('; ', {', '.join(found)}), '')"


def describe(url: str, store: str) -> dict[str, int]:
    """Returns the number of rows of each table."""
    with campaign_tables(url, store) as tables:
        return {name: tables.count(name) for name in _TABLES}
