"""SIGTERM and SIGINT, which stop a worker in the main thread."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Generator


@contextlib.contextmanager
def signals_call(on_signal: Callable[[], None]) -> Generator[None]:
    """Calls the function in the event loop at each of these signals inside the block. In other threads does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    caught = (signal.SIGTERM, signal.SIGINT)
    for number in caught:
        loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
