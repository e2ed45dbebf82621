"""The two file locks by which processes share a server.

`holders`: everyone who uses the server has it shared; who has it exclusively knows that nobody else uses the server.
`server`: the keeper and the server have it exclusively, inherited from the process that started them, so it is free
only when neither runs.

The kernel drops a lock when the last process that has it open ends, however it ends. So nothing here can go stale, and
no list of process ids is kept. Lock files are never deleted: two processes could then lock two different files.
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
    """A descriptor to lock. Not inherited by programs that this process starts, unless handed to them."""
    return open_file(path, os.O_RDWR)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the lock if it is free. A shared lock that can't be made exclusive is lost."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_free(path: Path) -> bool:
    """Whether nobody has the lock."""
    descriptor = open_lock(path)
    try:
        return try_lock(descriptor)
    finally:
        os.close(descriptor)


def wait_until(condition: Callable[[], bool], limit: float, failure: str) -> None:
    """Ask for a condition every few milliseconds: flock can't wait with a time limit."""
    deadline = time.monotonic() + limit
    while not condition():
        if time.monotonic() > deadline:
            raise EmbeddedFailed(f"{failure} (waited {limit:.0f} s)")
        time.sleep(0.005)
