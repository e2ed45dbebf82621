"""Gathers rows into Arrow record batches of one schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from jobwire.pipeline.lake.schemas import Columns
from jobwire.pipeline.stores.boundary import BATCH_ROWS

BATCH_BYTES = 32 * 1024 * 1024


class Rows:
    """Collects rows of a table (lake/rows.py) and returns them as record batches."""

    def __init__(self, columns: Columns) -> None:
        self._schema = columns.arrow
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, row: tuple[Any, ...], size: int = 0) -> None:
        """Adds a row whose texts have about `size` bytes."""
        self._rows.append(row)
        self._bytes += size

    def full(self) -> bool:
        return len(self._rows) >= BATCH_ROWS or self._bytes >= BATCH_BYTES

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yields what has been gathered, if anything, and starts over."""
        if self._rows:
            arrays = [
                pa.array(values, kind)
                for values, kind in zip(zip(*self._rows, strict=True), self._schema.types, strict=True)
            ]
            self._rows, self._bytes = [], 0
            yield pa.record_batch(arrays, schema=self._schema)
