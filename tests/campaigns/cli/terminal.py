"""A program in a terminal of its own, as a person sees it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Runs a command in a pseudo terminal. `text` has what was shown so far, without colours and movements."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._keyboard, screen = os.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
            stdin=screen,
            stdout=screen,
            stderr=screen,
        )
        os.close(screen)
        self.raw = ""

    @property
    def text(self) -> str:
        return _CONTROL.sub("", self.raw).replace("\r", "\n")

    def interrupt(self) -> None:
        """Does what a terminal does at Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def until(self, pattern: str, within: float = 60.0) -> re.Match[str]:
        """Reads until the text has the pattern."""
        deadline = time.monotonic() + within
        while (found := re.search(pattern, self.text)) is None:
            assert time.monotonic() < deadline, f"{pattern!r} was not shown: {self.text[-2000:]}"
            if not self._read():
                assert re.search(pattern, self.text), f"ended without {pattern!r}: {self.text[-2000:]}"
        return found

    def ended(self, within: float = 60.0) -> int:
        """Reads to the end and returns the exit code."""
        deadline = time.monotonic() + within
        while self._read():
            assert time.monotonic() < deadline, f"did not end: {self.text[-2000:]}"
        return self.process.wait(within)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._keyboard)

    def _read(self) -> bool:
        """Reads what there is. Returns False at the end."""
        ready, _, _ = select.select([self._keyboard], [], [], 1.0)
        if not ready:
            return True
        try:
            given = os.read(self._keyboard, 65536)
        except OSError:  # the program has closed its side
            return False
        self.raw += given.decode(errors="replace")
        return bool(given)
