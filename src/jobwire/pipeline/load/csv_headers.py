"""Compares the headers of CSV files that are loaded together.

Spark takes the columns from one of the files and reads the others by position. A file with the same columns in another
order would have its values under wrong names. So the first record of every file is read as a record, in a pass of its
own over the files, and all must be the same, but for the case of letters and blanks around names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from jobwire.errors import JobwireError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE = "_file"
_NOT_OF_A_NAME = "\ufeff\r "


def check_headers(read: Callable[[Mapping[str, str], str], DataFrame], options: Mapping[str, str], width: int) -> None:
    """Raises JobwireError with both headers if two files differ. `read` returns the records with the given options and
    columns, `width` is the number of columns."""
    names = [f"c{number}" for number in range(width + 1)]  # one more than there should be
    records = read({**options, "header": "false"}, ", ".join(f"{name} string" for name in names))
    beginnings = records.where("_metadata.file_block_start = 0").selectExpr(f"_metadata.file_path AS {_FILE}", *names)
    found = beginnings.mapInArrow(_first_records, beginnings.schema).collect()
    headers = {str(row[_FILE]): [value for value in row[1:] if value is not None] for row in sorted(found)}
    if clash := differing(headers):
        one, other = (f"{file} has {', '.join(map(_name, headers[file]))}" for file in clash)
        raise JobwireError(f"files with different headers can't be loaded together: {one}, and {other}")


def differing(headers: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
    """Returns two files whose headers differ, or None.

    >>> differing({"a.csv": ["to", "Subject"], "b.csv": ["\\ufeffto", "subject\\r"], "c.csv": ["subject", "to"]})
    ('a.csv', 'c.csv')
    """
    known = {file: [_name(name).lower() for name in header] for file, header in headers.items()}
    first = next(iter(known), "")
    return next(((first, file) for file, names in known.items() if names != known[first]), None)


def _name(text: str) -> str:
    return text.strip(_NOT_OF_A_NAME)


def _first_records(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the first record of each file. The records of a file's beginning are read in their order by one task."""
    seen: set[Any] = set()
    for batch in batches:
        files = batch.column(0)
        for file in files.unique().to_pylist():
            if file not in seen:
                seen.add(file)
                yield batch.slice(files.index(pa.scalar(file, files.type)).as_py(), 1)
