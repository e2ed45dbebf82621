"""BullMQ queues for the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.bullmq.keys import DEFAULT_PREFIX, Keys
from jobwire.pipeline.stores.bullmq.store import BullmqStore
from jobwire.pipeline.stores.redisio.link import Link, scan
from jobwire.urls import Address

__all__ = ["list_queues", "open_store"]


def open_store(address: Address, queue: str, name: str) -> BullmqStore:
    keys = Keys(address.options.get("prefix", DEFAULT_PREFIX), queue)
    return BullmqStore(Link(address, keys.base), keys, name)


def list_queues(address: Address) -> Sequence[str]:
    """Every client writes a queue's settings with its first job, so the keys that hold them tell the queues."""
    prefix = address.options.get("prefix", DEFAULT_PREFIX)
    return sorted({name for name in scan(address, f"{prefix}:", ":meta") if name and ":" not in name})
