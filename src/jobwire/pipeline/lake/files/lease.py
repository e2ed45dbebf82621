"""A lock in a storage that has none: a small file with its holder and the time until which it holds.

The holder renews it while it works. A holder that died stops renewing, and after the lease another takes it over. A
holder that was only slow finds its lease replaced: it goes on, and is refused when it publishes, since every
publication is conditional.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import orjson

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.files.storage import Content, Storage

LASTS = timedelta(seconds=60)

_log = logging.getLogger("jobwire.pipeline")


class Lease:
    """The right to run one kind of command in a lake, for the time of a `with` block."""

    def __init__(self, storage: Storage, name: str, lasts: timedelta = LASTS) -> None:
        self._storage, self._name, self._lasts = storage, name, lasts
        self._path = f"locks/{name}.json"
        self._token = uuid.uuid4().hex
        self._over = Event()
        self._renewer = Thread(target=self._renew, name=f"lease of {name}", daemon=True)

    def __enter__(self) -> None:
        found = self._storage.read(self._path)
        if found is not None and _until(found) > datetime.now(UTC):
            raise self._refused(found)
        if not self._put(None if found is None else found.version, self._lasts):
            raise self._refused(self._storage.read(self._path))
        self._renewer.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._renewer.join()
        found = self._own()
        if found is not None:
            self._put(found.version, timedelta(0))

    def _renew(self) -> None:
        while not self._over.wait(self._lasts.total_seconds() / 4):
            try:
                found = self._own()
                if found is None or not self._put(found.version, self._lasts):
                    _log.warning("the lease of this %s was taken over: what it publishes may be refused", self._name)
                    return
            except JobwireError as error:
                _log.warning("the lease of this %s was not renewed: %s; trying again", self._name, error)

    def _own(self) -> Content | None:
        found = self._storage.read(self._path)
        return found if found is not None and orjson.loads(found.data)["token"] == self._token else None

    def _put(self, version: str | None, lasts: timedelta) -> bool:
        holder = {"token": self._token, "host": socket.gethostname(), "process": os.getpid()}
        until = (datetime.now(UTC) + lasts).isoformat()
        return self._storage.replace(self._path, orjson.dumps({**holder, "until": until}), version)

    def _refused(self, found: Content | None) -> JobwireError:
        holder: dict[str, Any] = {} if found is None else orjson.loads(found.data)
        return JobwireError(
            f"another {self._name} is under way in the lake at {self._storage.root} (process {holder.get('process')} "
            f"on {holder.get('host')}, which holds it until {holder.get('until')}): wait for it to end"
        )


def _until(found: Content) -> datetime:
    return datetime.fromisoformat(orjson.loads(found.data)["until"])
