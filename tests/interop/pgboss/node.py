"""Real Node pg-boss, driven from Python."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from ..node_process import NodeProcess

SCRIPTS = Path(__file__).parents[1] / "node-pgboss"


class Peer(NodeProcess):
    """A Node process with pg-boss in it. `package` names its release."""

    def __init__(self, url: str, package: str = "pg-boss") -> None:
        super().__init__(SCRIPTS, package, url)


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
        self, queue: str, behaviour: str, options: Mapping[str, Any] | None = None, **more: Any
    ) -> AsyncIterator[NodeWorker]:
        """A worker that does what `peer.mjs` says under this name. `more` is for the behaviour."""
        work = {"pollingIntervalSeconds": 0.5, **(options or {})}
        handle = await self.peer.ask("work", **self._place, queue=queue, behaviour=behaviour, work=work, **more)
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

    async def received(self) -> list[Any]:
        """The data of these jobs, in the same order."""
        return await self._peer.ask("received", worker=self._handle)
