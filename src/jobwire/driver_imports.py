"""Lets one thread at a time import drivers.

Modules of a driver import one another in circles. If two threads begin to import it at once, each may wait for a module
that the other one holds. Python then raises a deadlock error in one of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.RLock()


@contextmanager
def one_at_a_time() -> Generator[None]:
    """Waits until no other thread is inside of such a block."""
    with _lock:
        yield


def _renew() -> None:
    """Replaces the lock in a forked child, where the thread that held it does not exist."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew)
