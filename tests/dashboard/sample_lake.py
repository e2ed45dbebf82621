"""A lake with gold tables as the pipeline publishes them, written without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.pointers import WHOLE, Part, Pointer, load_versioned, save
from jobwire.pipeline.lake.tables import columns_of


def publish(root: Path, tables: Mapping[str, list[dict[str, Any]]]) -> str:
    """Publishes rows as gold tables, or as those of silver by day, in the place of what was published before. Returns
    the root of the lake."""
    files = LakeFiles(str(root))
    for name, rows in tables.items():
        table = name if "/" in name else f"gold/{name}"
        columns = columns_of(table)
        before, version = load_versioned(files, table)
        generation = 1 if before is None else before.generation + 1
        parts: dict[str, Part] = {}
        for part in sorted({_part(table, row) for row in rows}) or [WHOLE]:
            folder = f"{part}/{generation}"
            (root / table / folder).mkdir(parents=True)
            own = [row for row in rows if _part(table, row) == part]
            filled = [{column: row.get(column) for column in columns.names} for row in own]
            parquet.write_table(pa.Table.from_pylist(filled, columns.arrow), root / table / folder / "part.parquet")
            parts[part] = Part(folder, len(own), 0, generation)
        now = datetime.now(UTC).isoformat()
        pointer = Pointer(table, "parquet", columns.ddl, f"run-{generation}", now, generation, parts)
        assert save(files, pointer, version)
    return str(root)


def _part(table: str, row: Mapping[str, Any]) -> str:
    return str(row["day"]) if table.startswith("silver/") else WHOLE
