"""Processes that are there in milliseconds, for faults that end many of them.

A process imports jobwire once and forks whenever it is asked to. Run as a program, `python nursery.py URL` is that
process: it reads the name of a program in this folder and its arguments as a line of JSON, and answers with the id of
the new process.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

TESTS = Path(__file__).parents[1]


class Nursery:
    """Starts and ends processes that run programs of this folder. Those that still run are killed in the end."""

    def __init__(self, url: str) -> None:
        """Imports what programs need for the protocol of the URL."""
        self._process = subprocess.Popen(
            [sys.executable, __file__, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        self._started: set[int] = set()

    def start(self, program: str, *arguments: object) -> int:
        """Starts a process that calls `main` of the program with these arguments. Returns its id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([program, *map(str, arguments)]).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        self._started.add(int(answer))
        return int(answer)

    def kill(self, pid: int) -> None:
        self._started.discard(pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def forget(self, pid: int) -> None:
        """Leaves alone a process that has ended, whose id may be given to another one."""
        self._started.discard(pid)

    def close(self) -> None:
        for pid in list(self._started):
            self.kill(pid)
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def main(url: str) -> None:
    from faults.parent import end_with_parent
    from jobwire.connection import load_backend
    from jobwire.urls import parse

    load_backend(parse(url))  # for its imports
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # leaves no zombies
    programs: dict[str, ModuleType] = {}
    while line := sys.stdin.readline():
        name, *arguments = json.loads(line)
        if name not in programs:
            programs[name] = importlib.import_module(f"faults.{name}")
        pid = os.fork()
        if not pid:
            end_with_parent()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(2, 1)
            try:
                programs[name].main(*arguments)
            finally:
                sys.stderr.flush()
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
