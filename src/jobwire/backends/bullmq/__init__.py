"""BullMQ on Redis and Valkey: queues shared with Node.js workers and producers of bullmq 5 and 6."""

from __future__ import annotations

from jobwire.backend import Backend
from jobwire.backends.bullmq.backend import BullMQ
from jobwire.urls import Address


def open_backend(address: Address) -> Backend:
    """The backend of a `bullmq+…` address. Touches nothing."""
    return BullMQ(address)
