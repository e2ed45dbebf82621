"""The command line as a user has it: a process of its own, or `main` called in this one."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from command_line import Said, started_here
from jobwire import ActiveJob, JobFailed, Queue, Worker
from jobwire.cli import main


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Said]:
    """Run a command line in this process."""
    monkeypatch.delenv("JOBWIRE_URL", raising=False)
    monkeypatch.delenv("JOBWIRE_STORE", raising=False)

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return run


@pytest.fixture
def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("JOBWIRE_URL", "JOBWIRE_STORE")}


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command line as a process of its own, in a folder of its own; what still runs in the end is killed."""
    with started_here(cwd=tmp_path, env=environment) as run:
        yield run


@pytest.fixture
def spawn(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., Said]:
    """Run a command line as a process of its own, to its end."""

    def run(*arguments: object) -> Said:
        process = start(*arguments)
        out, err = process.communicate()  # pytest-timeout ends a test that hangs
        return Said(process.returncode, out, err)

    return run


@pytest.fixture
def on_queue(jobwire_url: str) -> Callable[..., Any]:
    """Ask the queue `emails` of this test something: `on_queue(lambda queue: queue.counts())`."""
    return lambda question: ask(jobwire_url, question)


def ask(url: str, question: Callable[[Queue], Any], queue: str = "emails") -> Any:
    """Asks a queue something."""

    async def session() -> Any:
        async with Queue(queue, url) as opened:
            return await question(opened)

    return asyncio.run(session())


@pytest.fixture(params=["bullmq", "pgboss", "monque", "bridgemq"])
def every_url(request: pytest.FixtureRequest) -> str:
    """The URL of each protocol that has a server: a store in memory ends with the command that opened it."""
    url: str = request.getfixturevalue(f"jobwire_{request.param}_url")
    return f"{url}&max_retries=1" if request.param == "monque" else url


@pytest.fixture
def on_every() -> Callable[..., Any]:
    """Ask a queue of any store something: `on_every(url, lambda queue: queue.counts(), queue="letters")`."""
    return ask


async def fail_all(queue: Queue, texts: Sequence[str]) -> list[str]:
    """Adds a job for each error and lets it fail with that error. Returns the ids."""

    async def handle(job: ActiveJob) -> None:
        raise ConnectionError(job.data) if "refused" in job.data else ValueError(job.data)

    jobs = [await queue.add(text) for text in texts]
    async with Worker(queue.name, handle, queue.connection, concurrency=10):
        for job in jobs:
            with pytest.raises(JobFailed):
                await queue.wait(job.id, timeout=60)
    return [job.id for job in jobs]


@pytest.fixture
def fail() -> Callable[..., Any]:
    """Makes failed jobs: `on_queue(lambda queue: fail(queue, ["connection refused", "no address"]))`."""
    return fail_all


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


@pytest.fixture
def free_ports() -> list[int]:
    """Two ports on loopback, one after the other, that are free now."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return [port, port + 1]
