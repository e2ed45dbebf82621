"""The boundary of what a lake is stored in: a local disk, an object store, or a file system of Spark's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyarrow import dataset

SCHEMES = ("s3", "s3a", "s3n", "gs", "abfs", "abfss")
"""Those of object stores."""


class Content(NamedTuple):
    """A small file as it was read. `version` is another one once the file was replaced."""

    data: bytes
    version: str


class Found(NamedTuple):
    """A file of a lake, by its path from the root."""

    path: str
    size: int


class Storage(Protocol):
    """Files under the root of one lake. Paths are relative to it."""

    root: str
    """The root as Spark takes it."""
    shown: str
    """The root as Arrow, DuckDB and pandas take it."""

    def read(self, path: str) -> Content | None:
        """Returns a file, or None if there is none."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Replaces a file in one step: a reader finds the old one or the new one, whole, also after a crash."""
        ...

    def replace(self, path: str, data: bytes, version: str | None) -> bool:
        """Replaces a file in one step if it still has this version; None: if there is none. Returns whether it did. Of
        two that do this at once, one succeeds."""
        ...

    def names(self, path: str) -> tuple[list[str], list[str]]:
        """Returns the names of the folders and of the files in a folder."""
        ...

    def walk(self, path: str) -> Iterator[Found]:
        """Yields all files in a folder and in those below."""
        ...

    def remove(self, path: str) -> None:
        """Removes a folder with all that is in it, if there is one."""
        ...

    def rows(self, paths: Sequence[str], schema: pa.Schema | None) -> dataset.Dataset:
        """Returns Parquet files as one set of rows, with the given columns."""
        ...

    def locked(self, name: str) -> AbstractContextManager[Any]:
        """Holds a lock inside the block, or raises a JobwireError that names its holder."""
        ...
