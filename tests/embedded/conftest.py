"""Other processes that use an embedded server, each driven line by line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

SLOW_TO_START = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("postgres", "mongo")]
"""Servers that take a second or more to start."""

_PROGRAM = """
import sys
from jobwire import embedded
server = getattr(embedded, sys.argv[1])(sys.argv[2])
print(server.url, flush=True)
if sys.stdin.readline() == "leave\\n":
    server.close()
    print("left", flush=True)
    sys.stdin.readline()
"""


class User:
    """A process that joins the server of a folder as it starts, then leaves, exits or dies as told."""

    def __init__(self, kind: str, folder: Path, preexec_fn: Callable[[], None] | None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, kind, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            preexec_fn=preexec_fn,  # noqa: PLW1509 - the tests that give one start no thread
        )

    def joined(self) -> str:
        """Wait for it to join; the URL it got."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> None:
        """Close the server and go on running."""
        assert self.process.stdout is not None
        self._say("leave\n")
        assert self.process.stdout.readline() == "left\n"

    def exit(self) -> int:
        """Come to the end of the program without closing the server."""
        self._say("exit\n")
        return self.process.wait()

    def kill(self) -> None:
        """Die by kill -9."""
        self.process.kill()
        self.process.wait()

    def _say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()


@pytest.fixture
def user() -> Iterator[Callable[..., User]]:
    """Starts a process that uses the server of a kind in a folder; killed at the end of the test if it still runs."""
    with ExitStack() as end:

        def start(kind: str, folder: Path, preexec_fn: Callable[[], None] | None = None) -> User:
            made = User(kind, folder, preexec_fn)
            end.enter_context(made.process)
            end.callback(made.process.kill)
            return made

        yield start
