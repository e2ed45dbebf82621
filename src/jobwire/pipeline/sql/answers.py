"""Answers to queries as rows of Python's values, in the order in which they come."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from jobwire.pipeline.sql.cells import column_names
from jobwire.pipeline.sql.names import published
from jobwire.pipeline.sql.query import answer


@dataclass(frozen=True)
class Answer:
    """The columns of an answer, each with a name of its own, and its rows, which can be read once."""

    names: list[str]
    numbers: list[bool]
    """True for each column whose values are numbers."""
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def answered(lake: str, text: str) -> Generator[Answer]:
    """Yields the answer to a query. Its rows are computed as they are read."""
    with answer(lake, text) as batches:
        yield _of(batches)


def list_tables(lake: str) -> Answer:
    """Returns the published tables, with the number of their rows and the time of their publication."""
    tables = [
        {"name": name, "rows": pointer.rows, "published_at": datetime.fromisoformat(pointer.published_at)}
        for name, pointer in published(lake).items()
    ]
    return _of(pa.Table.from_pylist(tables).to_reader())


def _of(batches: pa.RecordBatchReader) -> Answer:
    kinds = [field.type for field in batches.schema]
    numbers = [pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) for kind in kinds]
    return Answer(column_names(batches.schema.names), numbers, _rows(batches))


def _rows(batches: pa.RecordBatchReader) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
