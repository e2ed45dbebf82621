"""Exports the published tables of a lake, without Spark. What was exported and has not changed since is left alone.

Each table is replaced in one commit of its own, which also records what it was made from. So an export that is killed
leaves every table as it was before or as it should be, and the next one continues. Rows that were written without a
commit are seen by no reader.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from jobwire.errors import InvalidOption, JobwireError
from jobwire.pipeline.export.changes import Changes, changes_since
from jobwire.pipeline.lake import run_log
from jobwire.pipeline.lake.files import LakeFiles, is_local
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.sql.names import published

Format = Literal["delta", "iceberg"]
FORMATS: tuple[Format, ...] = ("delta", "iceberg")


class Target(Protocol):
    """Exported tables of one format, by their names in SQL."""

    def exported(self, name: str, schema: pa.Schema) -> Mapping[str, str] | None:
        """Returns the folder of each part that is exported; None if there is no export, or one with other columns."""
        ...

    def replace(self, name: str, changes: Changes) -> None:
        """Makes the changes in one commit, with the record of the folders."""
        ...


@dataclass(frozen=True)
class ExportedTable:
    """A table of an export. `rows` are those that were written now, in place of others or of none."""

    name: str
    changed: bool
    rows: int
    rows_in_all: int


@dataclass(frozen=True)
class ExportResult:
    """The tables of an export, with what has changed in each."""

    run: str
    to: str
    format: Format
    tables: Sequence[ExportedTable]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def export_tables(
    lake: str,
    to: str,
    format: Format = "delta",  # noqa: A002 - the word for it in every library
    tables: Collection[str] | None = None,
    progress: Progress = silent,
) -> ExportResult:
    """Brings the exported tables in the folder `to` up to what the lake at a root has published: all tables, or those
    with the given names, such as `silver_jobs`."""
    format_of(format)
    pointers = published(lake)
    unknown = sorted({*(tables or ())} - {*pointers})
    if unknown:
        raise InvalidOption("tables", unknown[0], f"must be among {', '.join(pointers)}")
    folder = _folder(lake, to)
    done: list[ExportedTable] = []
    files = LakeFiles(lake)
    with ExitStack() as stack:
        stack.enter_context(LakeFiles(folder).locked("export"))
        target = _target(format, folder)
        run = stack.enter_context(run_log.recorded(files, "export", to=folder, format=format))
        for number, (name, pointer) in enumerate(pointers.items()):
            if tables is not None and name not in tables:
                continue
            progress(f"exporting {name}", number, len(pointers))
            changes = changes_since(pointer, target.exported(name, changes_since(pointer, None).schema))
            if changes.any:
                target.replace(name, changes)
            done.append(ExportedTable(name, changes.any, changes.rows, pointer.rows))
            run.rows_out += changes.rows
    return ExportResult(run.id, folder, format, tuple(done))


def format_of(text: str) -> Format:
    """Returns the format with a name."""
    for one in FORMATS:
        if one == text:
            return one
    raise InvalidOption("format", text, f"must be one of {', '.join(FORMATS)}")


def _folder(lake: str, to: str) -> str:
    """Returns the folder in full. Refuses one inside of the lake, which removes what it does not know."""
    if not is_local(to):
        raise JobwireError(f"exports are written to a folder, and {to} is not one")
    target, source = LakeFiles(to), LakeFiles(lake)
    folder = Path(target.for_arrow("")).resolve()
    if source.local and folder.is_relative_to(Path(source.for_arrow("")).resolve()):
        raise JobwireError(f"{to} is in the lake at {lake}: choose a folder beside it")
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)


def _target(format: Format, folder: str) -> Target:  # noqa: A002
    if format == "delta":
        from jobwire.pipeline.export.delta import DeltaTarget  # noqa: PLC0415 an extra

        return DeltaTarget(folder)
    from jobwire.pipeline.export.iceberg import IcebergTarget  # noqa: PLC0415 an extra

    return IcebergTarget(folder)
