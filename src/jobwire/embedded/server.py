"""The use of an embedded server by this process, shared with other processes."""

from __future__ import annotations

import atexit
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from types import TracebackType

from jobwire.embedded import locks, state
from jobwire.embedded.errors import EmbeddedFailed, unusable
from jobwire.embedded.ownership import make_folder, open_file
from jobwire.embedded.process import tail
from jobwire.embedded.recipe import Recipe
from jobwire.errors import JobwireError

_log = logging.getLogger("jobwire.embedded")

_WAIT_LIMIT = 90.0
_WATCH_EVERY = 0.5
_WATCH_SELDOM = 30.0
_open: weakref.WeakSet[Server] = weakref.WeakSet()


class Server:
    """A running server that this process uses, perhaps together with others.

    Made by `valkey`, `postgres`, `mongo` and `valkey_cluster`; a context manager. The server stops when the last
    process that uses it has closed its share or died.
    """

    def __init__(self, recipe: Recipe, folder: Path | str) -> None:
        recipe.check()
        self._name = recipe.name
        self._owner = os.getpid()
        self._url = ""
        self._share: int | None = None
        self._closing = threading.Event()
        self._joining = threading.Lock()
        top = Path(folder).absolute()
        try:
            self.folder = make_server_folder(top, recipe.name)
            self._share = locks.open_lock(self.folder / locks.HOLDERS)
            self._join(recipe)
        except BaseException as error:
            if self._share is not None:
                os.close(self._share)
                self._share = None
            if isinstance(error, OSError) and not isinstance(error, JobwireError):
                raise unusable(top, error) from error
            raise
        _open.add(self)
        self._watch = threading.Thread(
            target=self._replace_keeper, args=(recipe,), name=f"{top.name}-watch", daemon=True
        )
        self._watch.start()

    def _join(self, recipe: Recipe) -> None:
        share = self._share
        assert share is not None  # noqa: S101 - set just before
        busy = f"{self.folder} is still being shut down by another process"
        locks.wait_until(lambda: locks.try_lock(share, shared=True), _WAIT_LIMIT, busy)
        stuck = f"{self.folder} is locked by a server that does not get ready; see its server.log"
        locks.wait_until(lambda: self._answers() or self._start(recipe), _WAIT_LIMIT, stuck)

    def _replace_keeper(self, recipe: Recipe) -> None:
        """Starts a new keeper if the present one was killed, or has given up after many crashes. Without a keeper, a
        crashed server would not be restarted.

        Every process that uses the server checks this, so it does not matter which of them started the server. The lock
        of the server makes sure that only one of them starts the keeper.
        """
        pause = _WATCH_EVERY
        while not self._closing.wait(pause):
            current = state.read(self.folder)
            if current is not None and current.current:
                pause = _WATCH_EVERY
                continue
            try:
                with self._joining:
                    if not self._closing.is_set() and (self._answers() or self._start(recipe)):
                        _log.warning("the keeper of the server in %s had ended; it was replaced", self.folder)
            except (OSError, JobwireError) as error:
                _log.warning("the server in %s could not be restarted and will be tried again: %s", self.folder, error)
                pause = min(2 * pause, _WATCH_SELDOM)

    def _answers(self) -> bool:
        """True if the server listens. Its keeper may not have noticed a crash yet."""
        current = self._running()
        if current is None:
            return False
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", current.ports[0]), 2.0).close()
            return True
        return False

    def _running(self) -> state.State | None:
        current = state.read(self.folder)
        if current is None or not current.url or not current.current:
            return None
        self._url = current.url
        return current

    def _start(self, recipe: Recipe) -> bool:
        """Starts the keeper, unless another process is doing so."""
        lock = locks.open_lock(self.folder / locks.SERVER)
        try:
            if not locks.try_lock(lock):
                return False
            _start_keeper(recipe, self.folder, lock)
        finally:
            os.close(lock)
        return self._answers()

    @property
    def url(self) -> str:
        """The driver's URL. It changes only if the server crashes and another program takes its port before the
        restart."""
        self._running()
        return self._url

    @property
    def pid(self) -> int:
        """The server's process id. It changes when the server is restarted after a crash, and is 0 while it does not
        run."""
        current = self._running()
        return current.pid if current is not None else 0

    def close(self) -> None:
        """Closes this process's share. If no other process uses the server, it has stopped when this returns."""
        if self._share is None:
            return
        share, self._share = self._share, None
        _open.discard(self)
        try:
            # A forked child has the same lock as its parent, so it must only close its copy of the descriptor.
            if os.getpid() == self._owner:
                self._closing.set()
                with self._joining:  # a keeper that is being started must see this share until it can be stopped
                    self._leave(share)
                self._watch.join()
        finally:
            os.close(share)

    def _leave(self, share: int) -> None:
        if not locks.try_lock(share) and locks.try_lock(share, shared=True):
            return  # others use it
        # Either this process holds the lock alone, or the waiting keeper got it first and is stopping the server.
        locks.wait_until(self._stopped, _WAIT_LIMIT, f"{self.folder} does not shut down")

    def _stopped(self) -> bool:
        if locks.is_free(self.folder / locks.SERVER):
            return True
        current = state.read(self.folder)
        if current is not None and current.current:
            with suppress(ProcessLookupError):
                os.kill(current.keeper, signal.SIGTERM)
        return False

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Server {self._name} in {self.folder}{'' if self._share is not None else ', closed'}>"


def make_server_folder(folder: Path, name: str) -> Path:
    """Returns the folder of one server, below the folder that the user named."""
    if not folder.exists():
        make_folder(folder)
        with os.fdopen(open_file(folder / ".gitignore", os.O_WRONLY | os.O_TRUNC), "w") as ignored:
            ignored.write("*\n")
    place = folder / name
    make_folder(place, 0o700)
    return place


def _start_keeper(recipe: Recipe, folder: Path, lock: int) -> None:
    assert is_dataclass(recipe) and not isinstance(recipe, type)  # noqa: S101, PT018 - every recipe is one
    order = {"recipe": type(recipe).__name__, "fields": asdict(recipe), "folder": str(folder), "lock": lock}
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)  # the same import path, from any directory
    log = folder / "keeper.log"
    with os.fdopen(open_file(log, os.O_WRONLY | os.O_TRUNC), "wb") as sink:
        process = subprocess.Popen(  # noqa: S603 - our own command line
            # Warnings off: from Python 3.12 on there would be one about forking beside the keeper's waiting thread.
            [sys.executable, "-W", "ignore", "-m", "jobwire.embedded.keeper", json.dumps(order)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sink,
            cwd="/",
            env={**os.environ, "PYTHONPATH": paths},
            pass_fds=(lock,),
            start_new_session=True,
        )
    with process:
        assert process.stdout is not None  # noqa: S101 - asked for above
        answer = process.stdout.readline()
    if not answer:
        raise EmbeddedFailed(f"The keeper of {folder} ended before its server was ready:\n{tail(log)}")
    said = json.loads(answer)
    if "error" in said:
        raise EmbeddedFailed(said["error"])


@atexit.register
def _close_all() -> None:
    for server in list(_open):
        server.close()
