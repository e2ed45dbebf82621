"""Monque queues on MongoDB, for the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.pipeline.stores.monque.mongo import Collections
from jobwire.pipeline.stores.monque.store import MonqueStore
from jobwire.urls import Address


def open_store(address: Address, queue: str, name: str) -> MonqueStore:
    return MonqueStore(Collections(address), queue, name)


def list_queues(address: Address) -> Sequence[str]:
    collections = Collections(address)
    try:
        with collections.reaching():
            names = collections.jobs.distinct("name")
        return sorted(name for name in names if isinstance(name, str))
    finally:
        collections.close()
