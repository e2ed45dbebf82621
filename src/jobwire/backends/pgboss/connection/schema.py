"""What a database holds: which schema of pg-boss, told by its number and its columns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from jobwire.errors import StoreRefused

OLDEST, NEWEST = 26, 46


@dataclass(frozen=True, slots=True)
class Layout:
    """A pg-boss schema as it was found. Columns decide what may be written; the number only whether to go on."""

    name: str
    """As configured: `pgboss`, or a name in double quotes."""
    version: int
    columns: Mapping[str, frozenset[str]]
    has_clock: bool = True

    @property
    def schema(self) -> str:
        """The name for use in SQL."""
        return identifier(self.name)

    @property
    def side(self) -> str:
        """The schema beside it that is jobwire's own."""
        return identifier(side_name(self.name))

    @property
    def now(self) -> str:
        return f"{self.schema}.job_now()" if self.has_clock else "now()"

    @property
    def is_newer(self) -> bool:
        """Made by a release that this code does not know: its duties are left to it."""
        return self.version > NEWEST

    def table(self, name: str) -> str:
        return f'{self.schema}."{name}"'

    def has(self, word: str) -> bool:
        """Whether `job` has the column, or the table named before a dot has; a bare table name is asked for itself."""
        table, dot, column = word.partition(".")
        if dot:
            return column in self.columns.get(table, ())
        return word in self.columns.get("job", ()) or word in self.columns


def identifier(name: str) -> str:
    """A schema name as SQL takes it: in its quotes, or folded to lower case as PostgreSQL does without them."""
    return name if name.startswith('"') else f'"{name.lower()}"'


def side_name(name: str) -> str:
    return f'"{name[1:-1]}_jobwire"' if name.startswith('"') else f"{name}_jobwire"


def bare(name: str) -> str:
    return identifier(name)[1:-1]


def channel(name: str) -> str:
    """Where pg-boss says that a queue has new jobs."""
    return f"pgboss_{_digest(name)[:24]}"


def own_channel(name: str) -> str:
    """Where jobwire tells its own workers of what pg-boss keeps quiet about: jobs put off, put back, promoted."""
    return f"jobwire_{_digest(name)[:24]}"


def lock_key(database: str, name: str, suffix: str = "") -> int:
    """The advisory lock that every client of a schema takes for a purpose."""
    digest = hashlib.sha224(f"{database}.pgboss.{name}{suffix}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _digest(name: str) -> str:
    return hashlib.sha224(name.encode()).hexdigest()


def check_version(name: str, version: int) -> None:
    if version < OLDEST:
        raise StoreRefused(
            f"schema {name} is of pg-boss schema version {version}; jobwire works with {OLDEST} (pg-boss 11.1) to "
            f"{NEWEST} (12.38): let Node pg-boss migrate it first"
        )


# What this backend writes or reads in every version; newer columns are asked for one by one.
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
                f"schema {name} says that it is pg-boss schema {version}, but {table} has no {', '.join(missing)}: "
                f"jobwire works with versions {OLDEST} to {NEWEST}"
            )
