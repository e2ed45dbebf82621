"""The keeper: a small process that is the parent of one server, and runs as long as any process uses it.

It starts the server, publishes its address, restarts it on the same port if it crashes, and stops it when the last
process that uses it has closed its share or died. If the keeper dies, the kernel signals the server to stop. The keeper
runs in its own session, so Ctrl-C in a terminal reaches the workers there but not the server that they still need.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

from jobwire.embedded import locks, state
from jobwire.embedded.errors import EmbeddedFailed, unusable
from jobwire.embedded.mongo import Mongo
from jobwire.embedded.ownership import Account, adopt
from jobwire.embedded.postgres import Postgres
from jobwire.embedded.privileges import server_account
from jobwire.embedded.process import launch, started
from jobwire.embedded.recipe import Recipe
from jobwire.embedded.valkey import Valkey, ValkeyNode
from jobwire.errors import JobwireError

RECIPES = {recipe.__name__: recipe for recipe in (Valkey, ValkeyNode, Postgres, Mongo)}
_STOP_LIMIT = 20
_CRASHES, _CRASH_WINDOW = 6, 60.0


class Crashes:
    """Crashes of a server. Only those of the last minute count: a server that crashes once a day restarts at once."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque()
        self.any = False
        """True if there was one, however long ago."""

    def pause(self, now: float) -> float | None:
        """Notes a crash. Returns the seconds to wait before the restart, or None if there were too many."""
        self.any = True
        self._recent.append(now)
        while now - self._recent[0] >= _CRASH_WINDOW:
            self._recent.popleft()
        return 0.05 * 4 ** (len(self._recent) - 1) if len(self._recent) < _CRASHES else None


class Keeper:
    """Runs one server in `folder`. `lock` is the descriptor of the server lock, which the parent process has taken."""

    def __init__(self, recipe: Recipe, folder: Path, lock: int) -> None:
        self._recipe = recipe
        self._folder = folder
        self._lock = lock
        self._server: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._identity = state.State(os.getpid(), started(os.getpid()) or 0)

    def run(self) -> None:
        """Keeps the server running until no process uses it."""
        adopt(self._folder)
        account = server_account(self._folder)
        last = state.read(self._folder)
        if last is not None:
            self._identity = replace(self._identity, ports=last.ports)
        state.write(self._folder, self._identity)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGALRM, self._kill)
        threading.Thread(target=self._await_last_holder, daemon=True).start()
        crashes = Crashes()
        while not self._stopping:
            try:
                self._recipe.prepare(self._folder, account)
                self._serve(account)
            except Exception:
                if not crashes.any and not self._stopping:  # `main` reports it to the process that started the keeper
                    raise
                # A restart can come too early: PostgreSQL refuses while child processes of the killed server run.
                traceback.print_exc()
            if not self._stopping:
                pause = crashes.pause(time.monotonic())
                if pause is None:
                    raise EmbeddedFailed(f"{self._recipe.name} crashed {_CRASHES} times in {_CRASH_WINDOW:.0f} s")
                time.sleep(pause)

    def _serve(self, account: Account | None) -> None:
        """Starts the server and waits until it ends."""
        running = launch(
            self._recipe,
            self._folder,
            account=account,
            inherit=self._lock,
            ports=self._identity.ports,
            spawned=self._spawned,
        )
        url = self._recipe.url(self._folder, running.ports)
        if not self._stopping:
            self._identity = replace(self._identity, ports=running.ports)
            state.write(self._folder, replace(self._identity, pid=running.process.pid, url=url))
        _tell({"ready": True})
        running.process.wait()
        state.write(self._folder, self._identity)

    def _spawned(self, process: subprocess.Popen[bytes]) -> None:
        self._server = process
        if self._stopping:  # the stop signal came while the process was being started
            self._end_server()

    def _await_last_holder(self) -> None:
        holders = locks.open_lock(self._folder / locks.HOLDERS)
        fcntl.flock(
            holders, fcntl.LOCK_EX
        )  # kept until this process ends, so that newcomers wait until the server has stopped
        os.kill(os.getpid(), signal.SIGTERM)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        if self._stopping:
            return
        self._stopping = True
        # From here on no process may join, even if the one that sent the signal dies and frees its lock.
        state.write(self._folder, self._identity)
        self._end_server()

    def _end_server(self) -> None:
        if self._server is not None and self._server.returncode is None:
            self._server.send_signal(self._recipe.stop_signal)
            signal.alarm(_STOP_LIMIT)

    def _kill(self, _signal: int, _frame: FrameType | None) -> None:
        if self._server is not None:
            self._server.kill()


def _sentence(error: Exception, folder: Path) -> str:
    if isinstance(error, OSError) and not isinstance(error, JobwireError):
        error = unusable(folder, error)
    return str(error) if isinstance(error, JobwireError) else repr(error)


def _tell(message: dict[str, object]) -> None:
    """Sends the first message to the process that started the keeper, on standard output. Drops later ones."""
    with suppress(BrokenPipeError):  # it died, but another process may use the server by now
        os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> None:
    """Entry point of the process: the recipe's class and fields, the folder and the lock's descriptor, as JSON."""
    order = json.loads(sys.argv[1])
    if os.fork() > 0:  # the parent ends, so that init reaps the keeper
        os._exit(0)
    recipe = RECIPES[order["recipe"]](**order["fields"])
    folder = Path(order["folder"])
    try:
        Keeper(recipe, folder, order["lock"]).run()
    except Exception as error:
        _tell({"error": _sentence(error, folder)})
        raise


if __name__ == "__main__":
    main()
