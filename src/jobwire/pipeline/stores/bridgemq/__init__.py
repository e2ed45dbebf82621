"""BridgeMQ job types for the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bridgemq.keys import DEFAULT_NAMESPACE, Keys, check_name
from jobwire.pipeline.stores.bridgemq.index import Index
from jobwire.pipeline.stores.bridgemq.store import BridgemqStore
from jobwire.pipeline.stores.redisio.link import Link
from jobwire.urls import Address

__all__ = ["list_queues", "open_store"]


def open_store(address: Address, queue: str, name: str) -> BridgemqStore:
    check_name("queue", queue)
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    return BridgemqStore(Index(Link(address, keys.base), keys, queue), name)


def list_queues(address: Address) -> Sequence[str]:
    """The job types of the namespace, those that only peers have used among them."""
    keys = Keys(address.options.get("namespace", DEFAULT_NAMESPACE))
    link = Link(address, keys.base)
    try:
        return Index(link, keys, "").types()
    finally:
        link.close()
