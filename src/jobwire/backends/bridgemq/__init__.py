"""BridgeMQ on Redis and Valkey: jobs routed to workers by server, stack, capabilities and region.

A queue is a job type. All types of a namespace share the spec's lists; `?namespace=` in the URL names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jobwire.backend import Backend
from jobwire.backends.bridgemq.backend import BridgeMQ
from jobwire.errors import NotSupported
from jobwire.model import Job
from jobwire.urls import Address

__all__ = ["open_backend", "unroutable"]


def open_backend(address: Address) -> Backend:
    """The backend of a `bridgemq+…` address. Touches nothing."""
    return BridgeMQ(address)


class _Connection(Protocol):
    @property
    def backend(self) -> Backend: ...


class _Queue(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def connection(self) -> _Connection: ...


async def unroutable(queue: _Queue, *, limit: int = 100) -> Sequence[Job]:
    """Waiting jobs of the queue that no live worker can take: their server is down, or nobody has what they ask for."""
    backend = queue.connection.backend
    if not isinstance(backend, BridgeMQ):
        raise NotSupported(backend.capabilities.protocol, "routing by target")
    return await backend.unroutable(queue.name, limit)
