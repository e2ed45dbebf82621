"""Finds what has changed in a table since it was exported.

An export records the folder of each part that it has written, in the same commit as the rows. A folder is never changed
once a pointer names it, and its name holds the run that wrote it. So a part whose folder is recorded is exported, and
any other is not. There is no record beside the table that could differ from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import Pointer
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.lake.tables import has_days

PART = "part"
"""The column that names a row's part, in tables of days. Exports are partitioned by it."""


@dataclass(frozen=True)
class Changes:
    """The difference between a published table and its export. `whole` means that nothing of the export can stay."""

    pointer: Pointer
    write: tuple[str, ...]
    remove: tuple[str, ...]
    whole: bool

    @property
    def is_partitioned(self) -> bool:
        return has_days(self.pointer.table)

    @property
    def schema(self) -> pa.Schema:
        """Returns the columns of the export."""
        own = columns(*self.pointer.columns.split(", "))
        return (own.plus(f"{PART} string") if self.is_partitioned else own).arrow

    @property
    def any(self) -> bool:
        return self.whole or bool(self.write or self.remove)

    @property
    def touched(self) -> list[str]:
        """Returns the parts whose rows in the export are replaced or removed."""
        return sorted({*self.write, *self.remove})

    @property
    def folders(self) -> dict[str, str]:
        """Returns the folder of each part, to be recorded."""
        return {key: part.folder for key, part in self.pointer.parts.items()}

    @property
    def rows(self) -> int:
        """Returns the number of rows to write."""
        return sum(self.pointer.parts[key].rows for key in self.write)

    def reader(self) -> pa.RecordBatchReader:
        """Returns the rows to write, which are read from the lake as they are needed."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def tables(self, rows: int) -> Iterator[pa.Table]:
        """Yields the rows to write in pieces of about so many."""
        held: list[pa.RecordBatch] = []
        for batch in self._batches():
            held.append(batch)
            if sum(one.num_rows for one in held) >= rows:
                yield pa.Table.from_batches(held, self.schema)
                held = []
        if held:
            yield pa.Table.from_batches(held, self.schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        files, own = LakeFiles(self.pointer.root), columns(*self.pointer.columns.split(", ")).arrow
        for key in self.write:
            try:
                for batch in files.batches(f"{self.pointer.table}/{self.pointer.parts[key].folder}", own):
                    yield self._with_part(batch, key)
            except FileNotFoundError as error:
                raise JobwireError(
                    f"{self.pointer.table} in the lake at {self.pointer.root} was published twice during the export, "
                    "which has left it as it was: export again"
                ) from error

    def _with_part(self, batch: pa.RecordBatch, key: str) -> pa.RecordBatch:
        if not self.is_partitioned:
            return batch
        return pa.record_batch([*batch.columns, pa.repeat(pa.scalar(key), batch.num_rows)], schema=self.schema)


def changes_since(pointer: Pointer, exported: Mapping[str, str] | None) -> Changes:
    """Returns what to change in an export that has the given folders; None stands for one that is missing, or whose
    columns are others."""
    known = exported or {}
    write = tuple(key for key, part in pointer.parts.items() if known.get(key) != part.folder)
    return Changes(pointer, write, tuple(key for key in known if key not in pointer.parts), exported is None)
