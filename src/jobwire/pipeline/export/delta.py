"""Exports to Delta tables, written by delta-rs without Spark: one folder for each table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobwire.errors import JobwireError, MissingExtra
from jobwire.pipeline.export.changes import PART, Changes

if TYPE_CHECKING:
    from deltalake import DeltaTable

_RECORD = "jobwire.folders"
_LOOKED_AT = 100
"""Commits in which the record is looked for. Others than ours may have optimised the table since."""


class DeltaTarget:
    """A folder of Delta tables. Implements Target."""

    def __init__(self, folder: str) -> None:
        try:
            import deltalake  # noqa: PLC0415 an extra
        except ImportError:
            raise MissingExtra("Delta", "delta") from None
        self._delta = deltalake
        self._folder = folder

    def exported(self, name: str, schema: pa.Schema) -> Mapping[str, str] | None:
        """Returns the folders that the last commit of ours has recorded. Without one, the table is written whole."""
        table = self._table(name)
        if table is None or pa.schema(table.schema().to_arrow()).names != schema.names:
            return None
        for commit in table.history(_LOOKED_AT):
            record = commit.get(_RECORD)
            if record is not None:
                return json.loads(record)
        return None

    def replace(self, name: str, changes: Changes) -> None:
        """Replaces the rows of the touched parts, or all rows, in one commit."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415 an extra

        properties = self._delta.CommitProperties(custom_metadata={_RECORD: json.dumps(changes.folders)})
        partial = not changes.whole and changes.is_partitioned
        try:
            self._delta.write_deltalake(
                f"{self._folder}/{name}",
                changes.reader(),
                mode="overwrite",
                partition_by=[PART] if changes.is_partitioned else None,
                predicate=_in(changes.touched) if partial else None,
                schema_mode="overwrite" if changes.whole else None,
                commit_properties=properties,
            )
        except DeltaError as error:
            raise _refused(name, error) from error

    def _table(self, name: str) -> DeltaTable | None:
        path = f"{self._folder}/{name}"
        return self._delta.DeltaTable(path) if self._delta.DeltaTable.is_deltatable(path) else None


def _in(parts: list[str]) -> str:
    quoted = [part.replace("'", "''") for part in parts]
    return PART + " in ('" + "', '".join(quoted) + "')"


def _refused(name: str, error: Any) -> JobwireError:
    words = " ".join(str(error).split())
    return JobwireError(f"the export of {name} was refused, and its table is as it was: {words}; export again")
