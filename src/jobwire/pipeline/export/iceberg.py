"""Exports to Iceberg tables, written by PyIceberg without Spark: a catalog in SQLite, and a folder for each table."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobwire.errors import JobwireError, MissingExtra
from jobwire.pipeline.export.changes import PART, Changes

if TYPE_CHECKING:
    from pyiceberg.table import Table, Transaction

CATALOG = "catalog.db"
NAMESPACE = "jobwire"
_RECORD = "jobwire.folders"
_ROWS_AT_A_TIME = 50_000
"""PyIceberg takes the rows of a partitioned table as a whole, and searches all of them for those of each partition:
300,000 rows of 267 days took 12 s of a core at once, and 4 s in such pieces."""
_PARTS_AT_A_TIME = 100
"""With more than 200 values, PyIceberg looks into every file."""
_PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class IcebergTarget:
    """A folder with a catalog and its tables. Implements Target."""

    def __init__(self, folder: str) -> None:
        try:
            from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415 an extra
        except ImportError:
            raise MissingExtra("Iceberg", "iceberg") from None
        catalog = Path(folder, CATALOG)
        self._catalog: Any = SqlCatalog(NAMESPACE, uri=f"sqlite:///{catalog}", warehouse=f"file://{folder}")
        self._catalog.create_namespace_if_not_exists(NAMESPACE)

    def exported(self, name: str, schema: pa.Schema) -> Mapping[str, str] | None:
        """Returns the folders that the table has recorded. A table with other columns is dropped, and made again."""
        if not self._catalog.table_exists((NAMESPACE, name)):
            return None
        table: Table = self._catalog.load_table((NAMESPACE, name))
        if list(table.schema().column_names) != schema.names:
            return None
        record = table.properties.get(_RECORD)
        return None if record is None else json.loads(record)

    def replace(self, name: str, changes: Changes) -> None:
        """Replaces the rows of the touched parts, or all rows, in one commit."""
        from pyiceberg.exceptions import CommitFailedException  # noqa: PLC0415 an extra

        table = self._made(name, changes)
        try:
            with table.transaction() as transaction:
                if table.current_snapshot() is not None:
                    _delete(transaction, changes)
                for rows in changes.tables(_ROWS_AT_A_TIME):
                    transaction.append(rows)
                transaction.set_properties({_RECORD: json.dumps(changes.folders)})
        except CommitFailedException as error:
            words = " ".join(str(error).split())
            raise JobwireError(
                f"the export of {name} was refused, and its table is as it was: {words}; export again"
            ) from error

    def _made(self, name: str, changes: Changes) -> Table:
        key, schema = (NAMESPACE, name), changes.schema
        if self._catalog.table_exists(key):
            table: Table = self._catalog.load_table(key)
            if list(table.schema().column_names) == schema.names:
                return table
            self._catalog.drop_table(key)
        with self._catalog.create_table_transaction(key, schema, properties=_PROPERTIES) as transaction:
            if changes.is_partitioned:
                with transaction.update_spec() as spec:
                    spec.add_identity(PART)
        return self._catalog.load_table(key)


def _delete(transaction: Transaction, changes: Changes) -> None:
    """Deletes the rows of the touched parts, or all rows. There may be none, of which PyIceberg warns."""
    from pyiceberg import expressions  # noqa: PLC0415 an extra

    one_of: Any = expressions.In  # its stub has no arguments
    touched = changes.touched
    partial = not changes.whole and changes.is_partitioned
    filters = [
        one_of(PART, touched[start : start + _PARTS_AT_A_TIME]) for start in range(0, len(touched), _PARTS_AT_A_TIME)
    ]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Delete operation did not match any records")
        for rows in filters if partial else [expressions.AlwaysTrue()]:
            transaction.delete(rows)
