"""SIGINT and SIGTERM, counted: the first stops a fleet, the second releases its jobs, the third kills it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager


class Signals:
    """The number of signals so far."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, _number: int, _frame: object) -> None:
        self.count += 1


@contextmanager
def counted_signals(*, wanted: bool) -> Generator[Signals]:
    """Counts the signals inside the block, instead of ending the process. Does nothing outside of the main thread, or
    if this is not wanted."""
    seen = Signals()
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = {number: signal.signal(number, seen.note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
