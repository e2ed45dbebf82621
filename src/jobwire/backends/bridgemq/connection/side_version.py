"""The version of the side data in a namespace: the key `x:version`. It covers the keys under `x:` and the objects `x`
inside documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from redis.exceptions import ResponseError

from jobwire.backends.bridgemq.connection.namespace import Namespace
from jobwire.backends.side_version import FIRST
from jobwire.errors import StoreUnavailable

Step = Callable[[Namespace], Awaitable[None]]
STEPS: Sequence[Step] = ()
"""Each changes the side data from one version to the next. Two processes may run the same step at once, and a step is
run again if a process died during it: that must do no harm."""


class BridgeSideData:
    """Implements SideVersion."""

    def __init__(self, namespace: Namespace) -> None:
        self.where = f"namespace {namespace.keys.namespace} of {namespace.store.where}"
        self._namespace = namespace
        self._key = namespace.keys.version

    async def read(self) -> object:
        return await self._namespace.store.call("GET", self._key)

    async def stamp(self) -> object:
        try:
            await self._namespace.store.call("SET", self._key, FIRST, "NX")
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, ResponseError):
                raise
            return FIRST  # a replica or a full server refuses writes: a later opening writes the version
        return await self.read()

    async def advance(self, version: int, step: Step) -> None:
        await step(self._namespace)
        await self._namespace.scripts.run("side_version", [self._namespace.keys.base], [version])
