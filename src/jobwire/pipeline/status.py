"""The state of a lake, read from its small files: the last runs, the tables, and how far its sources are built.

Needs no Spark, and reads no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jobwire.errors import JobwireError
from jobwire.pipeline.history.marks import EXPIRED, MARKS
from jobwire.pipeline.lake import pointers, run_log
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.tables import EVENTS, PUBLISHED, SNAPSHOT_TABLES, has_days

LAST_RUNS = 10


@dataclass(frozen=True)
class TableStatus:
    """A published table; in bronze, one of one source."""

    table: str
    rows: int
    newest_day: str | None
    """The last day that it has rows of. None for a table without days."""
    published_at: str
    run: str


@dataclass(frozen=True)
class LakeStatus:
    """A lake as its small files have it."""

    lake: str
    format: str
    runs: Sequence[Mapping[str, Any]]
    """The last runs with the columns of the run log, the newest first."""
    tables: Sequence[TableStatus]
    marks: Mapping[str, Mapping[str, int]]
    """The marks of the last build, up to which `events` and `snapshots` of each source are built."""
    expired_before: str | None
    """The day before which rows of bronze have expired."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_status(root: str, runs: int = LAST_RUNS) -> LakeStatus:
    """Returns the state of a lake of any format. Raises JobwireError if there is none."""
    files = LakeFiles(root)
    bronze = [
        f"{folder}/{source}" for folder in (EVENTS, *SNAPSHOT_TABLES.values()) for source in files.folders(folder)
    ]
    found = [pointer for name in (*bronze, *PUBLISHED) if (pointer := pointers.load(files, name)) is not None]
    log = run_log.rows(files)
    begun = files.read("lake.json")
    if begun is None and not found and not log:
        raise JobwireError(f"there is no lake at {root} yet: run `jobwire pipeline run` first")
    return LakeStatus(
        lake=root,
        format="parquet" if begun is None else begun["format"],
        runs=log[::-1][:runs],
        tables=[*map(_table, found)],
        marks=files.read(MARKS) or {},
        expired_before=(files.read(EXPIRED) or {}).get("before"),
    )


def _table(pointer: pointers.Pointer) -> TableStatus:
    days = [key.partition("@")[0] for key in pointer.parts] if has_days(pointer.table) else []
    newest = max(days, default=None)
    return TableStatus(pointer.table, pointer.rows, newest, pointer.published_at, pointer.run)
