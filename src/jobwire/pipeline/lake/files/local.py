"""A lake on a disk of this machine, or on one that is mounted here."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import dataset

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files.storage import Content, Found


class LocalStorage:
    """Files in a folder. The kernel holds its locks, and frees them however the process ends."""

    def __init__(self, folder: str) -> None:
        self.shown = str(Path(folder).absolute())
        self.root = f"file://{self.shown}"

    def read(self, path: str) -> Content | None:
        try:
            data = Path(self._at(path)).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Content(data, hashlib.sha256(data).hexdigest())

    def write(self, path: str, data: bytes) -> None:
        """Writes to disk before the file gets its name: a power cut leaves no empty file."""
        target = self._at(path)
        folder = os.path.dirname(target)
        os.makedirs(folder, exist_ok=True)
        beside = f"{folder}/.{uuid.uuid4().hex}.new"
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, path: str, data: bytes, version: str | None) -> bool:
        # Held for the time of two small files. Other publications in this lake wait for it.
        with self._lock_file("publication") as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            found = self.read(path)
            if (None if found is None else found.version) != version:
                return False
            self.write(path, data)
            return True

    def names(self, path: str) -> tuple[list[str], list[str]]:
        try:
            found = [*os.scandir(self._at(path))]
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        return [one.name for one in found if one.is_dir()], [one.name for one in found if one.is_file()]

    def walk(self, path: str) -> Iterator[Found]:
        for folder, _, names in os.walk(self._at(path)):
            inner = os.path.relpath(folder, self.shown)
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    yield Found(f"{inner}/{name}", os.stat(f"{folder}/{name}").st_size)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._at(path))

    def rows(self, paths: Sequence[str], schema: pa.Schema | None) -> dataset.Dataset:
        return dataset.dataset([self._at(path) for path in paths], schema, format="parquet")

    @contextlib.contextmanager
    def locked(self, name: str) -> Generator[None]:
        with self._lock_file(name) as descriptor:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 20).decode(errors="replace") or "unknown"
                raise JobwireError(
                    f"another {name} is under way in the lake at {self.shown} (process {holder}): wait for it to end"
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield

    @contextlib.contextmanager
    def _lock_file(self, name: str) -> Generator[int]:
        path = Path(self._at(f"locks/{name}"))
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _at(self, path: str) -> str:
        return f"{self.shown}/{path}"
