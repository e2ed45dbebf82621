"""Workers that are there in milliseconds, for tests that kill many of them.

A process imports jobwire once and forks a worker whenever it is asked to. Run as a program, `python nursery.py URL` is
that process: it reads the name of a program in this folder and its arguments as a line of JSON, and answers with the
process id of the worker.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent


class Nursery:
    """Starts and kills workers of one program."""

    def __init__(self, process: asyncio.subprocess.Process, program: str) -> None:
        self._process = process
        self._program = program
        self._alive: list[int] = []

    async def start(self, *arguments: object) -> int:
        """Starts a worker; returns its process id."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([self._program, *map(str, arguments)]).encode() + b"\n")
        answer = await self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        self._alive.append(int(answer))
        return self._alive[-1]

    def kill(self, pid: int) -> None:
        self._alive.remove(pid)
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        while self._alive:
            with suppress(ProcessLookupError):
                self.kill(self._alive[-1])


@asynccontextmanager
async def nursery(program: str, url: str) -> AsyncIterator[Nursery]:
    """Forks workers that run `program` in this folder; all that still run are killed in the end."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, __file__, url, stdin=pipe, stdout=pipe)
    workers = Nursery(process, program)
    try:
        yield workers
    finally:
        workers.close()
        process.kill()
        await process.wait()


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(url: str) -> None:
    from jobwire.connection import load_backend
    from jobwire.urls import parse

    load_backend(parse(url))  # for its imports
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # leaves no zombies
    programs: dict[str, ModuleType] = {}
    while line := sys.stdin.readline():
        name, *arguments = json.loads(line)
        if name not in programs:
            programs[name] = _load(name)
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(2, 1)
            programs[name].main(*arguments)
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
