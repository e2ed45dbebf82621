"""A queue's table, and the expressions that read a row of it as the backend does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from jobwire.errors import StoreRefused
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.postgresio.times import faults, time_or_null

TIMES = ("created_on", "start_after", "started_on", "completed_on")
_CARRIED = frozenset({"id", "name", "data", "state", "priority", "singleton_key", "output", *TIMES})
"""Columns whose values the table `jobs` holds unchanged. An output is there too, in one form or another."""
_PRINTED_AS_JSON = frozenset({"int2", "int4", "int8", "bool", "json", "jsonb"})

# The backend's codec in SQL: a failure may be wrapped in `value`, and may be an object or anything else.
_FAILURE = (
    "CASE WHEN jsonb_typeof(j.output) = 'object' AND NOT j.output ? 'message' AND j.output ? 'value' "
    "THEN j.output -> 'value' ELSE j.output END"
)
ERROR = (
    f"CASE jsonb_typeof({_FAILURE}) WHEN 'object' THEN coalesce(({_FAILURE}) ->> 'message', ({_FAILURE})::text) "
    f"ELSE ({_FAILURE}) #>> '{{}}' END"
)
STACK = f"CASE WHEN jsonb_typeof({_FAILURE}) = 'object' THEN nullif(({_FAILURE}) ->> 'stack', '') END"
# A value under `value` alone was not an object when it was returned.
RESULT = (
    "CASE WHEN jsonb_typeof(j.output) = 'object' AND j.output ? 'value' AND j.output - 'value' = '{}' "
    "AND jsonb_typeof(j.output -> 'value') <> 'object' THEN j.output -> 'value' ELSE j.output END::text"
)
RETRIED = (
    "(j.start_after - CASE WHEN NOT j.retry_backoff THEN j.retry_delay ELSE least(j.retry_delay_max, "
    "greatest(j.retry_delay, 1) * 2 ^ least(16, j.retry_count + 1) / 2) END * interval '1 second')"
)
"""The time at which a job was put back for its next attempt. pg-boss does not store it. It follows from the due time:
exactly for a fixed delay, and as the latest possible time where the delay was drawn from a range."""
FINGERPRINT = "hash_record_extended(j, 0)::text"
"""Over the whole row as it is stored, whatever columns it has. It costs a tenth of `md5(j::text)` and does not depend
on the session's settings."""


@dataclass(frozen=True)
class QueueTable:
    """The table of a queue's jobs."""

    name: str
    oid: int
    columns: dict[str, str]
    """Types by name, in the order of the table."""
    has_side: bool
    """jobwire's own schema is beside pg-boss's."""
    remembers: bool
    """It has a table of attempts that workers remember."""
    expire_seconds: int
    deletion_seconds: int
    retention_seconds: int

    def flag(self, column: str) -> str:
        """Returns a boolean column as an expression, false where the schema is older than it."""
        return f"j.{column}" if column in self.columns else "false"

    def time(self, column: str) -> str:
        """Returns a time that a calendar has: null for infinity and for years beyond 9999."""
        return time_or_null(column)

    @property
    def malformed(self) -> str:
        """Returns why a row can't be read as a job."""
        found = faults(TIMES)
        known = "('created', 'retry', 'active', 'completed', 'cancelled', 'failed')"
        found.append(f"CASE WHEN j.state::text NOT IN {known} THEN 'unknown state ' || j.state END")
        return f"nullif(concat_ws('; ', {', '.join(found)}), '')"

    @property
    def raw(self) -> str:
        """Returns a JSON object of what no column holds, without nulls."""
        members = [
            f"{_key(name)} || "
            + (f"j.{_quoted(name)}::text" if kind in _PRINTED_AS_JSON else f"to_json(j.{_quoted(name)})")
            for name, kind in self.columns.items()
            if name not in _CARRIED
        ]
        # A completed job's object is its result.
        members.append(
            "CASE WHEN j.state <> 'completed' OR jsonb_typeof(j.output) <> 'object' "
            "THEN '\"output\":' || j.output::text END"
        )
        return f"'{{' || concat_ws(',', {', '.join(members)}) || '}}'"


def table_of(database: Database, queue: str, known: dict[str, QueueTable]) -> QueueTable:
    """Returns the table of a queue, which must exist. Looks it up if it is not known."""
    if queue not in known:
        known |= find_tables(database, [queue])
    if queue not in known:
        raise StoreRefused(f"queue {queue!r} does not exist in schema {database.layout.name} of {database.where}")
    return known[queue]


def find_tables(database: Database, queues: Sequence[str]) -> dict[str, QueueTable]:
    """Returns the tables of those of the queues that exist."""
    layout = database.layout
    given = [list(queues), f"{layout.side}.progress", layout.schema, f"{layout.side}.attempt"]
    found: dict[str, QueueTable] = {}
    for queue, name, expire, deletion, retention, oid, columns, kinds, has_side, remembers in database.ask(
        database.fitted("queue"), given
    ):
        kept = dict(zip(columns, kinds, strict=True))
        found[queue] = QueueTable(layout.table(name), oid, kept, has_side, remembers, expire, deletion, retention)
    return found


def _key(name: str) -> str:
    text = json.dumps(name, ensure_ascii=False) + ":"
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
