"""The pg-boss schema of a database: its version, its columns, and the names that are derived from its name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from jobwire.errors import StoreRefused

OLDEST, NEWEST = 26, 46


@dataclass(frozen=True, slots=True)
class Layout:
    """A pg-boss schema as it was found. The version decides whether jobwire works with it, the columns decide what is
    written."""

    name: str
    """The name as it is configured: `pgboss`, or a name in double quotes."""
    version: int
    columns: Mapping[str, frozenset[str]]
    has_clock: bool = True

    @property
    def schema(self) -> str:
        """The name for use in SQL."""
        return identifier(self.name)

    @property
    def side(self) -> str:
        """The schema of jobwire's side data, for use in SQL."""
        return identifier(side_name(self.name))

    @property
    def now(self) -> str:
        """The SQL for the database's time, as pg-boss reads it in this schema."""
        return f"{self.schema}.job_now()" if self.has_clock else "now()"

    @property
    def is_newer(self) -> bool:
        """True if a newer release of pg-boss made it than this code was written for. Maintenance and schedules are then
        left to that release."""
        return self.version > NEWEST

    def table(self, name: str) -> str:
        return f'{self.schema}."{name}"'

    def has(self, word: str) -> bool:
        """Returns True if the schema has this column of `job`, this `table.column`, or this table."""
        table, dot, column = word.partition(".")
        if dot:
            return column in self.columns.get(table, ())
        return word in self.columns.get("job", ()) or word in self.columns


def identifier(name: str) -> str:
    """Returns a schema name for use in SQL: with its own quotes, or in lower case as PostgreSQL folds unquoted
    names."""
    return name if name.startswith('"') else f'"{name.lower()}"'


def side_name(name: str) -> str:
    return f'"{name[1:-1]}_jobwire"' if name.startswith('"') else f"{name}_jobwire"


def bare(name: str) -> str:
    """Returns a schema name as the catalog holds it."""
    return identifier(name)[1:-1]


def channel(name: str) -> str:
    """Returns the channel on which pg-boss announces queues that have new jobs."""
    return f"pgboss_{_digest(name)[:24]}"


def own_channel(name: str) -> str:
    """Returns the channel on which jobwire wakes its own workers for what pg-boss does not announce: jobs that are
    delayed, released, promoted or recovered."""
    return f"jobwire_{_digest(name)[:24]}"


def lock_key(database: str, name: str, suffix: str = "") -> int:
    """Returns the key of the advisory lock that every client of a schema takes for one purpose."""
    digest = hashlib.sha224(f"{database}.pgboss.{name}{suffix}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _digest(name: str) -> str:
    return hashlib.sha224(name.encode()).hexdigest()


def check_version(name: str, version: int) -> None:
    if version < OLDEST:
        raise StoreRefused(
            f"schema {name} has pg-boss schema version {version}; jobwire works with {OLDEST} (pg-boss 11.1) to "
            f"{NEWEST} (12.38): let Node pg-boss migrate it first"
        )


# The columns that this backend uses in every version. It checks for newer columns one by one (`Layout.has`).
_NEEDED = {
    "job": {
        *(
            "id",
            "name",
            "priority",
            "data",
            "state",
            "policy",
            "dead_letter",
            "output",
            "singleton_key",
            "singleton_on",
        ),
        *("retry_limit", "retry_count", "retry_delay", "retry_backoff", "retry_delay_max"),
        *(
            "start_after",
            "created_on",
            "started_on",
            "completed_on",
            "keep_until",
            "expire_seconds",
            "deletion_seconds",
        ),
    },
    "queue": {"name", "policy", "partition", "table_name", "dead_letter", "retention_seconds"},
    "schedule": {"name", "key", "cron", "timezone", "data", "options"},
}


def check_columns(name: str, version: int, columns: Mapping[str, frozenset[str]]) -> None:
    for table, needed in _NEEDED.items():
        missing = sorted(needed - columns.get(table, frozenset()))
        if missing:
            raise StoreRefused(
                f"schema {name} has pg-boss schema version {version}, but {table} has no {', '.join(missing)}: "
                f"jobwire works with versions {OLDEST} to {NEWEST}"
            )
