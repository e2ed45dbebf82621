"""A real Node client, driven from Python."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .node_process import NodeProcess

SCRIPTS = Path(__file__).parent / "node"


class Peer(NodeProcess):
    """A Node process with a BullMQ client in it. `package` names its major."""

    def __init__(self, package: str, url: str) -> None:
        super().__init__(SCRIPTS, package, url)


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

    async def traces(self) -> list[Any]:
        """The trace that each run continues, of a worker whose settings have `traced`: its headers, or None."""
        return await self._peer.ask("traces", worker=self._handle)

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
