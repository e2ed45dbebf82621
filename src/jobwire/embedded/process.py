"""Starting a server program: finding free ports, logging to a file, waiting until it accepts requests."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from jobwire.embedded.errors import EmbeddedFailed
from jobwire.embedded.ownership import Account, open_file
from jobwire.embedded.privileges import before_exec
from jobwire.embedded.recipe import Recipe

READY_LIMIT = 60.0
_PORT_ATTEMPTS = 10
_LOG_LIMIT = 8 * 1024 * 1024
_PORT_TAKEN = "Address already in use"
_DISK_FULL = "No space left on device"
_NO_ROOM = 1024 * 1024


@dataclass(frozen=True)
class Running:
    """A started server. It was ready when this object was made."""

    process: subprocess.Popen[bytes]
    ports: tuple[int, ...]


def launch(
    recipe: Recipe,
    folder: Path,
    *,
    account: Account | None,
    inherit: int,
    ports: tuple[int, ...],
    spawned: Callable[[subprocess.Popen[bytes]], None],
) -> Running:
    """Starts the server and waits until it is ready. It inherits the descriptor `inherit`, and ends with this process.

    The `ports` of its last run are tried first, so that clients find it again; then free ones. `spawned` is called with
    each process as soon as it exists, so that a signal handler can reach it.
    """
    log = folder / "server.log"
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(folder / "server.log.1")
    for chosen in _candidates(recipe.ports, ports):
        command = recipe.command(folder, chosen)
        with os.fdopen(open_file(log, os.O_WRONLY | os.O_APPEND), "ab") as sink:
            start = sink.tell()
            process = subprocess.Popen(  # noqa: S603 - our own command line
                command,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},
                pass_fds=(inherit,),
                # The keeper's only other thread is blocked in a system call, so Python between fork and exec is safe.
                preexec_fn=before_exec(account, recipe.stop_signal, (Path(command[0]), folder / "data")),  # noqa: PLW1509
            )
        spawned(process)
        if _becomes_ready(recipe, folder, chosen, process):
            return Running(process, chosen)
        said = tail(log, start, lines=1000)  # MongoDB logs a lot after either of these
        # On a full disk the server may not even have been able to log why it ended.
        if _DISK_FULL in said or shutil.disk_usage(folder).free < _NO_ROOM:
            raise OSError(errno.ENOSPC, _DISK_FULL)
        if _PORT_TAKEN not in said:
            raise EmbeddedFailed(_failure(recipe, process, log, tail(log, start)))
    raise EmbeddedFailed(f"{recipe.name}: found no free port on 127.0.0.1 in {_PORT_ATTEMPTS} attempts")


def _becomes_ready(recipe: Recipe, folder: Path, ports: tuple[int, ...], process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + READY_LIMIT
    while process.poll() is None:
        if recipe.ready(folder, ports, process.pid):
            return process.poll() is None
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            return False
        time.sleep(0.01)
    return False


def _failure(recipe: Recipe, process: subprocess.Popen[bytes], log: Path, said: str) -> str:
    code = process.returncode
    how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
    return f"{recipe.name} {how} before it was ready. The end of {log}:\n{said}"


def _candidates(count: int, preferred: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if len(preferred) == count:
        yield preferred
    for _ in range(_PORT_ATTEMPTS):
        yield _free_ports(count)


def _free_ports(count: int) -> tuple[int, ...]:
    """Returns ports that were free just now. If another program takes one before the server does, `launch` tries
    again."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return tuple(each.getsockname()[1] for each in sockets)


def tail(log: Path, start: int = 0, lines: int = 15) -> str:
    """Returns the last lines that were written to a log after position `start`."""
    if not log.exists():
        return ""
    with log.open("rb") as source:
        source.seek(max(start, log.stat().st_size - 65536))
        return "\n".join(source.read().decode(errors="replace").splitlines()[-lines:])


def started(pid: int) -> int | None:
    """Returns when a process started, in clock ticks since boot, or None if it has ended. Together with the pid this
    identifies a process, since pids are reused."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *rest = stat.rpartition(")")[2].split()  # the program's name, in parentheses, may hold anything
    return None if state in ("Z", "X") else int(rest[18])
