"""Single keys of the terminal, without Enter."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def key_pressed(key: str) -> Generator[asyncio.Event]:
    """Yields an event that is set when the key is pressed. The terminal is as before when the block ends.

    Without a terminal on stdin, or on a system without its settings, the event is never set.
    """
    pressed = asyncio.Event()
    try:
        import termios  # noqa: PLC0415 - not on every system
        import tty  # noqa: PLC0415 - as above
    except ImportError:
        yield pressed
        return
    if not sys.stdin.isatty():
        yield pressed
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    before = termios.tcgetattr(descriptor)

    def read() -> None:
        given = os.read(descriptor, 100)
        if not given or key.encode() in given.lower():
            pressed.set()

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield pressed
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
