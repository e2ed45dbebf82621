"""Keeps a lake small: merges the parts that many ingests have left in bronze, lets old ones expire, and removes files
that nothing names.

Only bronze expires, and of it only what a build has used: silver and gold keep all of history. The day before which
rows have expired is recorded first. A build does not make silver again from bronze for such days: what comes late is
added to what is there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.history.marks import BUILT, record_expired
from jobwire.pipeline.lake import bronze
from jobwire.pipeline.lake.bronze import SourceTable
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.tables import PUBLISHED
from jobwire.pipeline.lake.versions import sweep
from jobwire.pipeline.spark.session import session_of

if TYPE_CHECKING:
    from jobwire.pipeline.spark.session import AnySession

_SHORTEST = timedelta(days=2)
"""Events of less than this age may still be joined by others of the same day."""
_EXPIRING = ("events", "jobs")
"""The kinds of rows that expire. The messages of campaigns do not: their quarantine is made from all of them."""


@dataclass(frozen=True)
class TidyResult:
    """The numbers of one tidying: parts that were merged, and into how many; parts and rows that have expired; folders
    that nothing named."""

    run: str
    merged: int = 0
    into: int = 0
    expired: int = 0
    expired_rows: int = 0
    swept: int = 0

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def tidy(spark: AnySession, lake: Lake, keep: timedelta | None = None, *, now: datetime | None = None) -> TidyResult:
    """Merges the small parts of bronze. With `keep`, removes rows of bronze that are older and that a build has used.
    Spark is not used if there is nothing to merge."""
    if keep is not None and keep < _SHORTEST:
        raise InvalidOption("keep", keep, "must be two days or more")
    if lake.format != "parquet":
        raise JobwireError(f"the lake at {lake.root} is kept as {lake.format}, which has commands of its own for this")
    with lake.files.locked("build"), lake.run("tidy", keep=None if keep is None else str(keep)) as run:
        work = _Tidying(lake, run.id)
        work.renew(spark, None if keep is None else f"{(now or datetime.now(UTC)) - keep:%Y-%m-%d}")
        work.sweep()
        result = TidyResult(run.id, **work.counts)
        run.rows_out = result.expired_rows
        run.note(**work.counts)
        return result


class _Tidying:
    """One tidying. No build is under way; an ingest may be."""

    def __init__(self, lake: Lake, run: str) -> None:
        self._lake, self._run = lake, run
        self._built: dict[str, dict[str, Any]] = lake.files.read(BUILT) or {}
        self.counts = dict.fromkeys(("merged", "into", "expired", "expired_rows", "swept"), 0)

    def renew(self, spark: AnySession, before: str | None) -> None:
        """Merges the parts of each day, and removes those of days before the given one."""
        plans = [*self._plans(before)]
        if before is not None and any(plan.old for plan in plans):
            record_expired(self._lake, before)
        for plan in plans:
            if plan.replaced:
                with self._without_news(plan.table):
                    bronze.carry_out(self._lake, lambda: session_of(spark), plan, self._run)
                self.counts["merged"] += sum(len(parts) for parts in plan.days.values())
                self.counts["into"] += len(plan.days)
                self.counts["expired"] += len(plan.old)
                self.counts["expired_rows"] += sum(part.rows for part in plan.old.values())

    def _plans(self, before: str | None) -> Iterator[bronze.Plan]:
        for table in bronze.source_tables(self._lake):
            pointer = self._lake.pointer(table.path)
            if pointer is not None:
                yield bronze.plan(table, pointer, self._used(table), before if table.kind in _EXPIRING else None)

    def sweep(self) -> None:
        """Removes what crashes have left."""
        names = [*PUBLISHED, *(table.path for table in bronze.source_tables(self._lake))]
        for name in names:
            pointer = self._lake.pointer(name)
            if pointer is not None:
                self.counts["swept"] += sweep(self._lake.files, pointer)

    def _used(self, table: SourceTable) -> int:
        """Returns the generation up to which a build has used a table."""
        found = self._built.get(table.kind, {}).get(table.source, 0)
        return found if isinstance(found, int) else 0

    @contextmanager
    def _without_news(self, table: SourceTable) -> Generator[None]:
        """Publishes inside the block. A table that had nothing new for a build has nothing new afterwards."""
        generation, used = self._generation(table), self._used(table)
        yield
        if used == generation and self._generation(table) == generation + 1:  # nothing was ingested meanwhile
            self._built[table.kind][table.source] = generation + 1
            self._lake.files.write(BUILT, self._built)

    def _generation(self, table: SourceTable) -> int:
        pointer = self._lake.pointer(table.path)
        return 0 if pointer is None else pointer.generation
