"""Finds the checks of data quality that failed in the last build. Needs no Spark for a lake of Parquet."""

from __future__ import annotations

from dataclasses import dataclass

from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import load, read_table


@dataclass(frozen=True)
class FailedCheck:
    """A row of gold/quality that is not ok. `value` is how often the check has failed."""

    check_name: str
    store: str | None
    queue: str | None
    value: int
    note: str | None

    def __str__(self) -> str:
        where = "/".join(part for part in (self.store, self.queue) if part)
        return f"{self.check_name}: {self.value:,} in {where} ({self.note})"


def failed_checks(root: str) -> list[FailedCheck]:
    """Returns the failed checks of the lake at a root, those that count most first. A lake of campaigns alone has no
    checks."""
    if load(LakeFiles(root), "gold/quality") is None:
        return []
    rows = read_table(root, "gold/quality").to_pylist()
    failed = [row for row in rows if not row["ok"]]
    found = [FailedCheck(*(row[name] for name in ("check_name", "store", "queue", "value", "note"))) for row in failed]
    return sorted(found, key=lambda check: (-check.value, check.check_name, check.store or "", check.queue or ""))
