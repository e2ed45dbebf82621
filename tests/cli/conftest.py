"""The command line as a user has it: a process of its own, or `main` called in this one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobwire import Queue
from jobwire.cli import main


@dataclass(frozen=True)
class Said:
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self
        return json.loads(self.out)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run a command line in this process."""
    monkeypatch.delenv("JOBWIRE_URL", raising=False)

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture
def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "JOBWIRE_URL"}


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command line as a process of its own, in a folder of its own; what still runs in the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "jobwire", *map(str, arguments)]
        piped: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **{**piped, **options})
        started.append(process)
        return process

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def spawn(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Said]:
    """Run a command line as a process of its own, to its end."""

    def run(*arguments: object) -> Said:
        process = start(*arguments)
        out, err = process.communicate(timeout=150)
        return Said(process.returncode, out, err)

    return run


@pytest.fixture
def on_queue(jobwire_url: str) -> Callable[..., Any]:
    """Ask the queue `emails` of this test something: `on_queue(lambda queue: queue.counts())`."""

    def ask(question: Callable[[Queue], Any]) -> Any:
        async def session() -> Any:
            async with Queue("emails", jobwire_url) as queue:
                return await question(queue)

        return asyncio.run(session())

    return ask


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Wait for a condition: the first true value of `look`, or a failure that shows the last one."""

    def poll(look: Callable[[], Any], *, within: float = 30.0) -> Any:
        deadline = time.monotonic() + within
        while not (seen := look()):
            assert time.monotonic() < deadline, f"not within {within:g} s; last seen: {seen!r}"
            time.sleep(0.05)
        return seen

    return poll
