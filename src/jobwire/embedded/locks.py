"""The two file locks by which processes share a server.

`holders`: each process that uses the server holds it shared. A process that holds it exclusively is the only user.
`server`: the keeper and the server hold it exclusively, inherited from the process that started them, so it is free
only when neither runs.

The kernel drops a lock when the last process that has it open ends, however it ends. So no lock can go stale, and no
list of process ids is needed. Lock files are never deleted: two processes could then lock two different files.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from jobwire.embedded.errors import EmbeddedFailed
from jobwire.embedded.ownership import open_file

HOLDERS = "holders.lock"
SERVER = "server.lock"


def open_lock(path: Path) -> int:
    """Returns a descriptor to lock. Programs that this process starts inherit it only if it is passed to them."""
    return open_file(path, os.O_RDWR)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Takes the lock if it is free. Returns False if not; a shared lock that was to become exclusive is then lost."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_free(path: Path) -> bool:
    """True if no process holds the lock."""
    descriptor = open_lock(path)
    try:
        return try_lock(descriptor)
    finally:
        os.close(descriptor)


def wait_until(condition: Callable[[], bool], limit: float, failure: str) -> None:
    """Checks a condition every few milliseconds until it holds, since flock has no time limit. Raises EmbeddedFailed
    after the limit."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise EmbeddedFailed(f"{failure} (waited {limit:.0f} s)")
        time.sleep(0.005)
