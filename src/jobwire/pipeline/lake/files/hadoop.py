"""A lake that is reached through the Spark session: `hdfs://`, `viewfs://`, `dbfs:/Volumes/…`, and object stores whose
credentials only Spark has.

All files go through the session's Hadoop file system, in its Java process. Hadoop has no conditional put: `replace`
compares and replaces under a lease, a file that one writer at a time can create. A lease that has ended without being
given back is moved away, to a name made of its time: of two waiters that saw the same one, the second can't move it
once more, nor the lease that the first has taken meanwhile. A holder that was paused for that long finds that the lease
is not its own any more, and replaces nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import dataset, fs

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files.lease import Lease
from jobwire.pipeline.lake.files.reading import ReadOnly
from jobwire.pipeline.lake.files.storage import SCHEMES, Content, Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LASTS = 30.0
"""Seconds after which a lease is that of a writer that died: it is held for the time of two small files."""
_LOOK_EVERY = 0.05


class HadoopStorage:
    """Files of a Hadoop file system. The session's settings and credentials apply."""

    def __init__(self, root: str) -> None:
        self.root = self.shown = root.rstrip("/")
        self._of_objects = self.root.partition(":")[0] in SCHEMES
        session: Any = _session(root)
        self._java = session._jvm
        self._conf = session._jsparkSession.sessionState().newHadoopConf()
        self._system = self._call(self._path("").getFileSystem, self._conf)

    def read(self, path: str) -> Content | None:
        try:
            stream = self._call(self._system.open, self._path(path))
        except FileNotFoundError:
            return None
        try:
            data = bytes(self._call(stream.readAllBytes))
        finally:
            stream.close()
        return Content(data, hashlib.sha256(data).hexdigest())

    def write(self, path: str, data: bytes) -> None:
        if self._of_objects:
            self._put(self._path(path), data)  # there, a file appears whole when it is closed
            return
        beside = self._path(f"{path}.{uuid.uuid4().hex}.new")
        self._put(beside, data)
        self._rename(beside, self._path(path), "OVERWRITE")

    def replace(self, path: str, data: bytes, version: str | None) -> bool:
        with self._lease(path) as is_held:
            found = self.read(path)
            if (None if found is None else found.version) != version or not is_held():
                return False
            self.write(path, data)
            return True

    def names(self, path: str) -> tuple[list[str], list[str]]:
        found = self._listed(path)
        folders = [one.getPath().getName() for one in found if one.isDirectory()]
        return folders, [one.getPath().getName() for one in found if one.isFile()]

    def walk(self, path: str) -> Iterator[Found]:
        for one in self._listed(path):
            inner = f"{path}/{one.getPath().getName()}"
            if one.isDirectory():
                yield from self.walk(inner)
            else:
                yield Found(inner, one.getLen())

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._call(self._system.delete, self._path(path), True)

    def rows(self, paths: Sequence[str], schema: pa.Schema | None) -> dataset.Dataset:
        system = fs.PyFileSystem(ReadOnly(self.root, self._open))
        return dataset.dataset(list(paths), schema, "parquet", system)

    def locked(self, name: str) -> AbstractContextManager[Any]:
        return Lease(self, name)

    def _open(self, path: str) -> Any:
        found = self.read(path)
        if found is None:
            raise FileNotFoundError(f"{self.root}/{path}")
        return pa.BufferReader(found.data)

    def _path(self, path: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self.root}/{path}" if path else self.root)

    def _put(self, path: Any, data: bytes, *, overwrite: bool = True) -> None:
        stream = self._call(self._system.create, path, overwrite)
        try:
            self._call(stream.write, data)
        finally:
            self._call(stream.close)

    def _rename(self, old: Any, new: Any, option: str) -> None:
        hadoop = self._java.org.apache.hadoop.fs
        chosen = getattr(hadoop.Options.Rename, option)
        options = self._java.java.lang.reflect.Array.newInstance(chosen.getClass(), 1)
        options[0] = chosen
        context = self._call(hadoop.FileContext.getFileContext, self._path("").toUri(), self._conf)
        self._call(context.rename, old, new, options)

    def _listed(self, path: str) -> list[Any]:
        try:
            return [*self._call(self._system.listStatus, self._path(path))]
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def _lease(self, path: str) -> Generator[Callable[[], bool]]:
        """Holds the lease of a file. Yields the question whether it is still held."""
        name, token = lease_of(path), uuid.uuid4().hex.encode()
        held = self._path(name)

        def is_held() -> bool:
            found = self.read(name)
            return found is not None and found.data == token

        while True:
            try:
                self._put(held, token, overwrite=False)
                break
            except FileExistsError:
                self._end_if_old(name)
                time.sleep(_LOOK_EVERY)
        try:
            yield is_held
        finally:
            if is_held():
                self._call(self._system.delete, held, False)

    def _end_if_old(self, name: str) -> None:
        held = self._path(name)
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            since = self._call(self._system.getFileStatus, held).getModificationTime()
            if time.time() - since / 1000 > _LASTS:
                ended = self._path(f"{name}.{since}.old")
                if self._of_objects:
                    self._call(self._system.rename, held, ended)
                else:
                    self._rename(held, ended, "NONE")

    def _call(self, method: Callable[..., Any], *given: Any) -> Any:
        """Calls a method of Hadoop. Its exceptions become those of Python, or one sentence."""
        from py4j.protocol import Py4JJavaError  # noqa: PLC0415 comes with Spark

        try:
            return method(*given)
        except Py4JJavaError as error:
            name, text = error.java_exception.getClass().getSimpleName(), error.java_exception.getMessage()
            if name in ("FileNotFoundException", "NotInMountpointException"):
                raise FileNotFoundError(text) from None
            if name == "FileAlreadyExistsException":
                raise FileExistsError(text) from None
            raise JobwireError(f"the lake at {self.root} can't be reached: {name}: {text}") from error


def lease_of(path: str) -> str:
    """Returns the file that is the lease of another one."""
    return f"locks/{hashlib.sha256(path.encode()).hexdigest()[:16]}.lease"


def _session(root: str) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 an extra

    # Threads of Python have no active session of their own.
    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession  # pyright: ignore[reportPrivateUsage]
    if session is None or not hasattr(session, "_jsparkSession"):
        raise JobwireError(
            f"the lake at {root} is reached through Spark: start the command with spark-submit, or call "
            "spark_session() first. Spark Connect offers no file system for it"
        )
    return session
