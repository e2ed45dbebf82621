"""A lake that is reached through the Spark session: `hdfs://`, `viewfs://`, `dbfs:/Volumes/…`, and object stores whose
credentials only Spark has.

All files go through the session's Hadoop file system, in its Java process. Hadoop has no conditional put: `replace`
compares and replaces under a lease, a file that one writer at a time can create.
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
from jobwire.pipeline.lake.files.objects import SCHEMES as OBJECTS
from jobwire.pipeline.lake.files.reading import ReadOnly
from jobwire.pipeline.lake.files.storage import Content, Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LASTS = 30.0
"""Seconds after which a lease is that of a writer that died: it is held for the time of two small files."""
_LOOK_EVERY = 0.05


class HadoopStorage:
    """Files of a Hadoop file system. The session's settings and credentials apply."""

    def __init__(self, root: str) -> None:
        self.root = self.shown = root.rstrip("/")
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
        if self.root.partition(":")[0] in OBJECTS:
            self._put(self._path(path), data)  # there, a file appears whole when it is closed
            return
        beside = self._path(f"{path}.{uuid.uuid4().hex}.new")
        self._put(beside, data)
        hadoop = self._java.org.apache.hadoop.fs
        overwriting = self._java.java.lang.reflect.Array.newInstance(hadoop.Options.Rename.OVERWRITE.getClass(), 1)
        overwriting[0] = hadoop.Options.Rename.OVERWRITE
        context = self._call(hadoop.FileContext.getFileContext, self._path("").toUri(), self._conf)
        self._call(context.rename, beside, self._path(path), overwriting)

    def replace(self, path: str, data: bytes, version: str | None) -> bool:
        with self._lease(path):
            found = self.read(path)
            if (None if found is None else found.version) != version:
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

    def _listed(self, path: str) -> list[Any]:
        try:
            return [*self._call(self._system.listStatus, self._path(path))]
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def _lease(self, path: str) -> Generator[None]:
        held = self._path(f"locks/{hashlib.sha256(path.encode()).hexdigest()[:16]}.lease")
        while True:
            try:
                self._put(held, path.encode(), overwrite=False)
                break
            except FileExistsError:
                self._end_if_old(held)
                time.sleep(_LOOK_EVERY)
        try:
            yield
        finally:
            self._call(self._system.delete, held, False)

    def _end_if_old(self, held: Any) -> None:
        with contextlib.suppress(FileNotFoundError):
            since = self._call(self._system.getFileStatus, held).getModificationTime() / 1000
            if time.time() - since > _LASTS:
                self._call(self._system.delete, held, False)

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
