"""The keeper: a small process beside each server, its parent, that lives as long as somebody uses the server.

It starts the server, says where it listens, starts it again on the same port should it crash, and stops it when the
last process that uses it has left or died. The server can't outlive it: the kernel then tells the server to stop. It
runs in its own session, so Ctrl-C in a terminal reaches the workers there but not the server they still need.
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


class Keeper:
    """Runs one server in `folder`. `lock` is the descriptor of the server lock, already taken by whoever started us."""

    def __init__(self, recipe: Recipe, folder: Path, lock: int) -> None:
        self._recipe = recipe
        self._folder = folder
        self._lock = lock
        self._server: subprocess.Popen[bytes] | None = None
        self._stopping = False
        self._identity = state.State(os.getpid(), started(os.getpid()) or 0)

    def run(self) -> None:
        """Keep the server running until nobody uses it."""
        adopt(self._folder)
        account = server_account(self._folder)
        last = state.read(self._folder)
        if last is not None:
            self._identity = replace(self._identity, ports=last.ports)
        state.write(self._folder, self._identity)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGALRM, self._kill)
        threading.Thread(target=self._await_last_holder, daemon=True).start()
        crashes: deque[float] = deque(maxlen=_CRASHES)
        while not self._stopping:
            try:
                self._recipe.prepare(self._folder, account)
                self._serve(account)
            except Exception:
                if not crashes and not self._stopping:  # `main` reports it to the process that waits for us
                    raise
                # A restart can come too early: PostgreSQL waits for the orphans of the server that was killed.
                traceback.print_exc()
            if not self._stopping:
                crashes.append(time.monotonic())
                if len(crashes) == _CRASHES and crashes[-1] - crashes[0] < _CRASH_WINDOW:
                    raise EmbeddedFailed(f"{self._recipe.name} crashed {_CRASHES} times in {_CRASH_WINDOW:.0f} s")
                time.sleep(0.05 * 4 ** (len(crashes) - 1))

    def _serve(self, account: Account | None) -> None:
        """One life of the server, from start to end."""
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
        if self._stopping:  # told to stop while the process was being made
            self._end_server()

    def _await_last_holder(self) -> None:
        holders = locks.open_lock(self._folder / locks.HOLDERS)
        fcntl.flock(holders, fcntl.LOCK_EX)  # kept until we end, so that newcomers wait for the server to be gone
        os.kill(os.getpid(), signal.SIGTERM)

    def _stop(self, _signal: int, _frame: FrameType | None) -> None:
        if self._stopping:
            return
        self._stopping = True
        # From here on nobody may join, even if the process that told us to stop dies and frees its lock.
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
    """Send the first word to the process that waits for us, on standard output; later ones go nowhere."""
    with suppress(BrokenPipeError):  # it died, but another may have come to use the server
        os.write(sys.stdout.fileno(), json.dumps(message).encode() + b"\n")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> None:
    """Entry point of the process: the recipe's class and fields, the folder and the lock's descriptor, as JSON."""
    order = json.loads(sys.argv[1])
    if os.fork() > 0:  # so that we are nobody's child, and nobody has to reap us
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
