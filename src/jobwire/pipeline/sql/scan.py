"""The rows of a published table for DuckDB. Arrow reads the files, so DuckDB needs no access to any."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import dataset

from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import Pointer, read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.lake.schemas import RUNS, columns


def schema_of(pointer: Pointer) -> pa.Schema:
    """Returns the columns that the table was published with."""
    return columns(*pointer.columns.split(", ")).arrow


def scan(root: str, pointer: Pointer) -> Any:
    """Returns the rows of a table as Arrow has them: in a folder, read when they are needed and as far as they are; on
    other file systems, read now."""
    if not LakeFiles(root).local:
        return read_table(root, pointer.table)
    schema, files = schema_of(pointer), pointer.files
    return dataset.dataset(files, schema, "parquet") if files else schema.empty_table()


def scan_runs(root: str) -> pa.Table:
    """Returns the run log as a table."""
    return pa.Table.from_pylist(read_runs(root), RUNS.arrow)
