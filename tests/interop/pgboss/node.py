"""Real Node pg-boss, driven from Python: one process, told by JSON lines what to do."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NODE = Path(sys.prefix) / "bin" / "node"
SCRIPTS = Path(__file__).parents[1] / "node-pgboss"
ANSWER_WITHIN = 60.0
GOES_WITHIN = 10.0


class PeerError(Exception):
    """Node raised an error."""


class Peer:
    """A Node process with pg-boss in it; `package` says which release."""

    def __init__(self, url: str, package: str = "pg-boss") -> None:
        self._process = subprocess.Popen(
            [NODE, SCRIPTS / "peer.mjs", package, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=SCRIPTS
        )
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    async def ask(self, verb: str, /, **command: Any) -> Any:
        """Give one command; its answer. Raises PeerError with Node's message."""
        future: Future[Any] = Future()
        with self._lock:
            number = next(self._ids)
            self._waiting[number] = future
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps({"id": number, "do": verb, **command}).encode() + b"\n")
            self._process.stdin.flush()
        async with asyncio.timeout(ANSWER_WITHIN):
            return await asyncio.wrap_future(future)

    def kill(self) -> None:
        """End the process as a crash would."""
        self._process.kill()
        self._process.wait(GOES_WITHIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(GOES_WITHIN)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(GOES_WITHIN)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._lock:
                future = self._waiting.pop(answer["id"])
            if future.cancelled():
                continue
            if "error" in answer:
                future.set_exception(PeerError(answer["error"]))
            else:
                future.set_result(answer["ok"])


class NodeBoss:
    """One schema, seen through a Node process. Methods and options are pg-boss's own."""

    def __init__(self, peer: Peer, schema: str, instance: str = "quiet", **options: Any) -> None:
        self.peer = peer
        self._place = {"schema": schema, "instance": instance, "options": options}

    async def start(self) -> None:
        await self.peer.ask("start", **self._place)

    async def call(self, method: str, /, *args: Any) -> Any:
        return await self.peer.ask("call", **self._place, method=method, args=list(args))

    async def heard(self) -> list[Any]:
        """Errors and warnings that the instance has reported."""
        return await self.peer.ask("heard", **self._place)

    async def stop(self) -> None:
        await self.peer.ask("stop", **self._place)

    @contextlib.asynccontextmanager
    async def work(
        self, queue: str, behaviour: str, options: Mapping[str, Any] | None = None
    ) -> AsyncIterator[NodeWorker]:
        """A worker that does what `peer.mjs` says under this name."""
        work = {"pollingIntervalSeconds": 0.5, **(options or {})}
        handle = await self.peer.ask("work", **self._place, queue=queue, behaviour=behaviour, work=work)
        try:
            yield NodeWorker(self.peer, handle)
        finally:
            await self.peer.ask("offWork", worker=handle)


class NodeWorker:
    def __init__(self, peer: Peer, handle: str) -> None:
        self._peer = peer
        self._handle = handle

    async def runs(self) -> list[str]:
        """Ids of the jobs whose handler was called, one entry a call."""
        return await self._peer.ask("runs", worker=self._handle)
