"""The files of a lake, wherever it is: its small files, its folders and its Parquet files.

| root | its tables are written by | its small files are read and written by |
|---|---|---|
| a path, `file:` | Spark | this process |
| `s3a://`, `s3://`, `gs://`, `abfss://` | Spark | this process; with `JOBWIRE_LAKE_FILES=spark` the Spark session |
| `hdfs://`, `viewfs://`, `dbfs:/Volumes/…`, any other | Spark | the Spark session |

Nothing in a lake names its root: a copy is a lake of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from jobwire.errors import InvalidOption
from jobwire.pipeline.lake.files.local import LocalStorage
from jobwire.pipeline.lake.files.storage import SCHEMES, Storage

__all__ = ["LakeFiles", "Versioned", "is_local", "through_spark"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
THROUGH = "JOBWIRE_LAKE_FILES"


class Versioned(NamedTuple):
    """The JSON value of a file, and the version by which it can be replaced. Both are None if there is no file."""

    value: Any
    version: str | None


class LakeFiles:
    """Files under one root: a folder, or a URI such as `s3a://bucket/lake`. Paths given are relative to it."""

    def __init__(self, root: str) -> None:
        self._storage = _storage(root)
        self.local = isinstance(self._storage, LocalStorage)
        self.root = self._storage.root

    def for_spark(self, path: str) -> str:
        """Returns the path as Spark takes it, whose default file system may be another one."""
        return f"{self.root}/{path}"

    def for_arrow(self, path: str) -> str:
        """Returns the path as Arrow, DuckDB and pandas take it."""
        return f"{self._storage.shown}/{path}"

    def read(self, path: str) -> Any:
        """Returns the JSON value of a file, or None if there is no such file."""
        return self.read_versioned(path).value

    def read_versioned(self, path: str) -> Versioned:
        """Returns the JSON value of a file with its version."""
        found = self._storage.read(path)
        return Versioned(None, None) if found is None else Versioned(orjson.loads(found.data), found.version)

    def read_text(self, path: str) -> str | None:
        """Returns a text file, or None if there is no such file."""
        found = self._storage.read(path)
        return None if found is None else found.data.decode()

    def write(self, path: str, value: Any) -> None:
        """Replaces the file by the JSON value, in one step."""
        self._storage.write(path, orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))

    def replace(self, path: str, value: Any, version: str | None) -> bool:
        """Replaces the file by the JSON value, in one step, if it still has the version; None: if there is none.
        Returns whether it did."""
        return self._storage.replace(path, orjson.dumps(value, option=orjson.OPT_SORT_KEYS), version)

    def table(
        self, paths: Sequence[str], schema: pa.Schema, columns: Sequence[str] | None = None, where: Any = None
    ) -> pa.Table:
        """Returns the rows of Parquet files, or some of their columns and rows."""
        found = self._storage.rows(paths, schema)
        return found.to_table(columns=None if columns is None else list(columns), filter=where)

    def batches(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the Parquet files in a folder, in the columns of the schema: the files may have more.
        Raises FileNotFoundError if it has none."""
        found = self.parquet(path)
        if not found:
            raise FileNotFoundError(self.for_arrow(path))
        yield from self._storage.rows(found, schema).to_batches()

    def count(self, path: str) -> int:
        """Returns the number of rows that the Parquet files in a folder state."""
        found = self.parquet(path)
        return self._storage.rows(found, None).count_rows() if found else 0

    def parquet(self, path: str, folders: Collection[str] | None = None) -> list[str]:
        """Returns the Parquet files below a folder, or in some of the folders below it, sorted. Files whose names begin
        with a dot or an underscore are none of the table's."""
        wanted = None if folders is None else {f"{path}/{folder}" for folder in folders}
        found = [one.path for one in self._storage.walk(path)] if wanted is None or wanted else []
        return sorted(
            one
            for one in found
            if one.endswith(".parquet")
            and not one.rpartition("/")[2].startswith((".", "_"))
            and (wanted is None or one.rpartition("/")[0] in wanted)
        )

    def bytes(self, path: str) -> int:
        """Returns the size of all files in a folder and in those below."""
        return sum(found.size for found in self._storage.walk(path))

    def folders(self, path: str) -> list[str]:
        """Returns the names of the folders in a folder, sorted."""
        return sorted(self._storage.names(path)[0])

    def files(self, path: str) -> list[str]:
        """Returns the names of the files in a folder, sorted; hidden ones are left out."""
        return sorted(name for name in self._storage.names(path)[1] if not name.startswith("."))

    def remove(self, path: str) -> None:
        """Removes a folder with all that is in it, if there is one."""
        self._storage.remove(path)

    def locked(self, name: str) -> AbstractContextManager[Any]:
        """Holds a lock inside the block, or raises a JobwireError that names its holder. On a local disk the kernel
        frees it however the process ends. Elsewhere it is a lease: see lease.py."""
        return self._storage.locked(name)


def is_local(root: str) -> bool:
    """Returns whether a root is a folder of this machine. Nothing is opened."""
    return _scheme(root) == "file"


def through_spark(root: str) -> bool:
    """Returns whether the files of a root are reached through a Spark session only. Nothing is opened."""
    scheme = _scheme(root)
    return scheme != "file" and (scheme not in SCHEMES or bool(os.environ.get(THROUGH)))


def _scheme(root: str) -> str:
    found = _SCHEME.match(root)
    return found[1].lower() if found else "file"


def _storage(root: str) -> Storage:
    scheme = _scheme(root)
    if scheme == "file":
        return LocalStorage(re.sub(r"^file:(//[^/]*)?(?=/)", "", root, flags=re.IGNORECASE))
    through = os.environ.get(THROUGH, "")
    if through not in ("", "spark"):
        raise InvalidOption(THROUGH, through, "must be spark, or not set")
    # Imported where they are used: most lakes are folders, and need neither client.
    from jobwire.pipeline.lake.files.objects import object_storage  # noqa: PLC0415

    if scheme in SCHEMES and not through:
        return object_storage(root)
    from jobwire.pipeline.lake.files.hadoop import HadoopStorage  # noqa: PLC0415

    return HadoopStorage(root)
