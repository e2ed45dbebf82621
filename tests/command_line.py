"""Command lines that tests run: what one has printed, and processes that end with their test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Said:
    """The exit code and the output of a command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The values of an output with one JSON document per line."""
        assert self.code == 0, self
        return [json.loads(line) for line in self.out.splitlines()]


@contextmanager
def started_here(**always: Any) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `jobwire …` as processes of their own, with these options of Popen. Those that still run in the end are
    killed."""
    started: list[subprocess.Popen[str]] = []
    piped: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}

    def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "jobwire", *map(str, arguments)]
        started.append(subprocess.Popen(command, **{**piped, "text": True, **always, **options}))
        return started[-1]

    try:
        yield start
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.communicate()
