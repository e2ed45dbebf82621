"""The small files of a lake, and its folders, on any file system that Arrow reaches.

A small file is replaced in one step: a reader finds the old one or the new one, whole, also after a crash.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
from pyarrow import dataset, fs

from jobwire.errors import JobwireError


class LakeFiles:
    """Files under one root: a folder, or a URI such as `s3://bucket/lake`. Paths given are relative to it."""

    def __init__(self, root: str) -> None:
        scheme, found, rest = root.partition("://")
        self.local = not found or scheme == "file"
        if self.local:
            base = str(Path(rest if found else root).absolute())
            self._system: Any = fs.LocalFileSystem()
            self._base, self.root = base, f"file://{base}"
        else:
            # Spark calls Amazon's store s3a, Arrow s3.
            uri = f"s3://{rest}" if scheme in ("s3a", "s3n") else root
            try:
                self._system, base = fs.FileSystem.from_uri(uri)
            except (OSError, ValueError) as error:
                raise JobwireError(f"the lake at {root} can't be reached: {error}") from error
            self._base, self.root = base.rstrip("/"), root.rstrip("/")

    def for_spark(self, path: str) -> str:
        """Returns the path as Spark takes it, whose default file system may be another one."""
        return f"{self.root}/{path}"

    def for_arrow(self, path: str) -> str:
        """Returns the path as Arrow, DuckDB and pandas take it."""
        return f"{self._base}/{path}" if self.local else f"{self.root}/{path}"

    def read(self, path: str) -> Any:
        """Returns the JSON value of a file, or None if there is no such file."""
        try:
            with self._system.open_input_stream(self._at(path)) as stream:
                return orjson.loads(stream.read())
        except FileNotFoundError:
            return None

    def write(self, path: str, value: Any) -> None:
        """Replaces the file by the JSON value, in one step."""
        target = self._at(path)
        beside = f"{target.rpartition('/')[0]}/.{uuid.uuid4().hex}.new"
        self._system.create_dir(target.rpartition("/")[0], recursive=True)
        content = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS)
        if self.local:
            _put(beside, target, content)
            return
        with self._system.open_output_stream(beside) as stream:
            stream.write(content)
        self._system.move(beside, target)

    def table(self, path: str, schema: pa.Schema, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
        """Returns the rows of the Parquet files in a folder, or some of their columns and rows."""
        found = dataset.dataset(self._at(path), schema, "parquet", self._system)
        return found.to_table(columns=None if columns is None else list(columns), filter=where)

    def batches(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the Parquet files in a folder."""
        yield from dataset.dataset(self._at(path), schema, "parquet", self._system).to_batches()

    def count(self, path: str) -> int:
        """Returns the number of rows that the Parquet files in a folder state."""
        return dataset.dataset(self._at(path), format="parquet", filesystem=self._system).count_rows()

    def bytes(self, path: str) -> int:
        """Returns the size of all files in a folder and in those below."""
        found = self._system.get_file_info(fs.FileSelector(self._at(path), allow_not_found=True, recursive=True))
        return sum(each.size or 0 for each in found)

    def folders(self, path: str) -> list[str]:
        """Returns the names of the folders in a folder, sorted."""
        return self._names(path, fs.FileType.Directory)

    def files(self, path: str) -> list[str]:
        """Returns the names of the files in a folder, sorted; hidden ones are left out."""
        return [name for name in self._names(path, fs.FileType.File) if not name.startswith(".")]

    def remove(self, path: str) -> None:
        """Removes a folder with all that is in it, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            self._system.delete_dir(self._at(path))

    @contextlib.contextmanager
    def locked(self, name: str) -> Generator[None]:
        """Holds a lock inside the block. On local file systems one process has it at a time, and the kernel frees it
        however the process ends.

        Elsewhere there is no lock, and the second of two writers is refused when it publishes: see `Lake.publish`.
        """
        if not self.local:
            yield
            return
        path = Path(self._at(f"locks/{name}"))
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 20).decode(errors="replace") or "unknown"
                raise JobwireError(
                    f"another {name} is under way in the lake at {self._base} (process {holder}): wait for it to end"
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(descriptor)

    def _at(self, path: str) -> str:
        return f"{self._base}/{path}"

    def _names(self, path: str, kind: Any) -> list[str]:
        found = self._system.get_file_info(fs.FileSelector(self._at(path), allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == kind)


def _put(beside: str, target: str, content: bytes) -> None:
    """Writes to disk before the file gets its name: a power cut leaves no empty file."""
    with open(beside, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, target)
    folder = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
