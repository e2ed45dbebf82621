"""A lake in an object store: Amazon's and those that speak its protocol, Google's, Azure's.

An object is put whole or not at all. `replace` is a put with a condition (`If-None-Match: *`, or `If-Match` with the
version that was read), which the store decides: of two writers, one is refused. Credentials come from the environment,
as the clients of these stores take them: `AWS_…`, `GOOGLE_…`, `AZURE_…`.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import dataset, fs

from jobwire.errors import JobwireError, MissingExtra
from jobwire.pipeline.lake.files.lease import Lease
from jobwire.pipeline.lake.files.reading import ReadOnly
from jobwire.pipeline.lake.files.storage import Content, Found

_SETTINGS = ("AWS_", "GOOGLE_", "AZURE_")
_PATIENCE = timedelta(seconds=30)
_IN_ONE = 8_000_000
"""A file up to this size is fetched with one request: a Parquet file's end and its columns would take several."""


def object_storage(root: str) -> ObjectStorage:
    """Returns the storage of a root: the same one as before, with its open connections, unless the settings of the
    environment are others."""
    return _made(root, tuple(sorted(item for item in os.environ.items() if item[0].startswith(_SETTINGS))))


class ObjectStorage:
    """Objects with one prefix in a bucket or container."""

    def __init__(self, root: str) -> None:
        try:
            import obstore  # noqa: PLC0415 an extra
            from obstore import exceptions, store  # noqa: PLC0415
        except ImportError:
            raise MissingExtra(f"the lake at {root}", "lake") from None
        self.root = root.rstrip("/")
        scheme, _, rest = self.root.partition("://")
        self.shown = f"s3://{rest}" if scheme in ("s3a", "s3n") else self.root
        self._client: Any = obstore
        self._errors: Any = exceptions
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        on_s3 = self.shown.startswith("s3://")
        make: Any = store.from_url
        with self._reached():
            self._store: Any = make(
                self.shown,
                client_options={"allow_http": on_s3 and (endpoint or "").startswith("http://")},
                retry_config={"retry_timeout": _PATIENCE},
                **({"endpoint": endpoint} if on_s3 and endpoint else {}),
            )

    def read(self, path: str) -> Content | None:
        with self._reached():
            try:
                found = self._client.get(self._store, path)
                data, version = bytes(found.bytes()), found.meta["e_tag"]
            except FileNotFoundError:
                return None
        if not version:
            raise JobwireError(f"the store of the lake at {self.root} gives no versions (ETag): it can't hold a lake")
        return Content(data, version)

    def write(self, path: str, data: bytes) -> None:
        with self._reached():
            self._client.put(self._store, path, data, use_multipart=False)

    def replace(self, path: str, data: bytes, version: str | None) -> bool:
        mode: Any = "create" if version is None else {"e_tag": version}
        with self._reached():
            try:
                self._client.put(self._store, path, data, mode=mode, use_multipart=False)
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError, FileNotFoundError):
                # A put that was repeated because its answer was lost is refused because of itself.
                found = self.read(path)
                return found is not None and found.data == data
        return True

    def names(self, path: str) -> tuple[list[str], list[str]]:
        with self._reached():
            found = self._client.list_with_delimiter(self._store, prefix=path)
        folders = [one.rstrip("/").rpartition("/")[2] for one in found["common_prefixes"]]
        # Some stores, and Hadoop, keep an empty object with the folder's own name.
        return folders, [one["path"].rpartition("/")[2] for one in found["objects"] if one["path"] != path]

    def walk(self, path: str) -> Iterator[Found]:
        with self._reached():
            for batch in self._client.list(self._store, prefix=path):
                yield from (Found(one["path"], one["size"]) for one in batch)

    def remove(self, path: str) -> None:
        paths = [found.path for found in self.walk(path)]
        folders = {path, *(inner for one in paths for inner in _folders(one) if inner.startswith(f"{path}/"))}
        with self._reached():
            if paths:
                self._client.delete(self._store, paths)
            # Stores with true folders keep them when they are empty. In others there is nothing of that name.
            for folder in sorted(folders, key=len, reverse=True):
                with suppress(FileNotFoundError):
                    self._client.delete(self._store, folder)

    def rows(self, paths: Sequence[str], schema: pa.Schema | None) -> dataset.Dataset:
        system = fs.PyFileSystem(ReadOnly(self.shown, self._open))
        return dataset.dataset(list(paths), schema, "parquet", system)

    def locked(self, name: str) -> AbstractContextManager[Any]:
        return Lease(self, name)

    def _open(self, path: str) -> Any:
        with self._reached():
            if self._client.head(self._store, path)["size"] <= _IN_ONE:
                return pa.BufferReader(bytes(self._client.get(self._store, path).bytes()))
            return pa.PythonFile(self._client.open_reader(self._store, path), mode="r")

    @contextmanager
    def _reached(self) -> Generator[None]:
        """Turns an error of the store's client into one sentence. What is not there is left to the caller."""
        try:
            yield
        except FileNotFoundError:
            raise
        except (self._errors.BaseError, OSError) as error:
            text = str(error).strip()
            raise JobwireError(
                f"the lake at {self.root} can't be reached: {text.splitlines()[0] if text else type(error).__name__}"
            ) from error


def _folders(path: str) -> Iterator[str]:
    """Yields the folders that a file is in."""
    while path := path.rpartition("/")[0]:
        yield path


@lru_cache(maxsize=8)
def _made(root: str, _settings: tuple[tuple[str, str], ...]) -> ObjectStorage:
    return ObjectStorage(root)
