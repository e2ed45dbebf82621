"""The pointer of a table: a file `_current.json` beside its versions that names its parts. Read without Spark.

    hours = read_table("lake", "gold/latency_hourly").to_pandas()
    duckdb.read_parquet(read_pointer("lake", "gold/latency_hourly").files)

A table has parts: a day each in silver and in hourly and daily gold, a run of ingest each in the snapshots, else one
part `all`. A part lies in a folder of its own, which nothing changes once a pointer names it. Folders that one
publication replaces are kept until the next, for readers that are still using them.

A pointer names folders below its table only, never the root of the lake, so that a lake can be moved and copied. It is
replaced on the condition that it is still the one that was read: of two publications at once, one is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.schemas import columns as columns_from

WHOLE = "all"
MODULUS = 2**64


@dataclass(frozen=True)
class Part:
    """A part of a table. `checksum` is the sum of a hash over all values of each row: equal rows in any order have an
    equal one."""

    folder: str
    rows: int
    checksum: int
    generation: int = 0
    """The generation of the pointer that first named it."""
    reaches: Sequence[str] | None = None
    """The days on which its rows count in gold; of a snapshot, those on which it was taken. None: unknown, or of no
    use."""


@dataclass(frozen=True)
class Pointer:
    """A table as it was published. `generation` counts publications."""

    table: str
    format: str
    columns: str
    run: str
    published_at: str
    generation: int
    parts: Mapping[str, Part]
    previous: Sequence[str] = field(default_factory=tuple[str, ...])
    """The folders that this publication has replaced."""
    root: str = ""

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts.values())

    @property
    def checksum(self) -> int:
        return sum(part.checksum for part in self.parts.values()) % MODULUS

    @property
    def folders(self) -> list[str]:
        """Returns the folders of the parts, relative to the table's own, sorted."""
        return sorted({part.folder for part in self.parts.values()})

    @property
    def paths(self) -> list[str]:
        """Returns the folders of the parts in full."""
        return [LakeFiles(self.root).for_arrow(f"{self.table}/{folder}") for folder in self.folders]

    @property
    def files(self) -> list[str]:
        """Returns the Parquet files in the folders, for any reader of such files."""
        files = LakeFiles(self.root)
        return [files.for_arrow(path) for path in _files(files, self)]


def read_pointer(root: str, table: str) -> Pointer:
    """Returns the table's pointer, e.g. of `gold/latency_hourly`, `silver/jobs`, `quarantine`."""
    pointer = load(LakeFiles(root), table)
    if pointer is None:
        raise JobwireError(f"the lake at {root} has no table {table} yet")
    return pointer


def read_table(root: str, table: str, *, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
    """Returns the rows of a published Parquet table, without Spark: all columns or some, all rows or those that an
    expression of `pyarrow.compute` selects."""
    pointer = read_pointer(root, table)
    if pointer.format != "parquet":
        raise JobwireError(f"{table} in the lake at {root} is kept as {pointer.format}, which only Spark reads here")
    schema = columns_from(*pointer.columns.split(", ")).arrow
    files = LakeFiles(root)
    found = _files(files, pointer)
    if found:
        return files.table(found, schema, columns, where)
    empty = schema.empty_table()
    return empty.select(list(columns)) if columns is not None else empty


def load(files: LakeFiles, table: str) -> Pointer | None:
    """Returns the pointer of a table, or None if it was never published."""
    return load_versioned(files, table)[0]


def load_versioned(files: LakeFiles, table: str) -> tuple[Pointer | None, str | None]:
    """Returns the pointer of a table, and the version by which it can be replaced."""
    found, version = files.read_versioned(_file(table))
    if found is None:
        return None, version
    found["parts"] = {key: Part(**part) for key, part in found["parts"].items()}
    return Pointer(**found, root=files.root), version


def save(files: LakeFiles, pointer: Pointer, version: str | None) -> bool:
    """Replaces the pointer that has this version. Returns False if another publication was first."""
    content: dict[str, Any] = asdict(pointer)
    del content["root"]
    return files.replace(_file(pointer.table), content, version)


def _file(table: str) -> str:
    return f"{table}/_current.json"


def _files(files: LakeFiles, pointer: Pointer) -> list[str]:
    """Returns the Parquet files of a table, found with one listing: one for each part would be one request each."""
    found = files.parquet(pointer.table, pointer.folders)
    there = {path.rpartition("/")[0] for path in found}
    missing = sorted(
        part.folder for part in pointer.parts.values() if part.rows and f"{pointer.table}/{part.folder}" not in there
    )
    if missing:
        raise JobwireError(
            f"{pointer.table} in the lake at {pointer.root} lacks {len(missing)} of its folders, such as {missing[0]}: "
            "a table that was published twice since has to be read again, and a copy of a lake has to be whole"
        )
    return found
