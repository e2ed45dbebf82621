"""BullMQ on Redis and Valkey: queues shared with Node.js workers and producers of bullmq 5 and 6."""

from __future__ import annotations

from jobwire.boundary import Backend
from jobwire.urls import Address


def open_backend(address: Address) -> Backend:
    """The backend of a `bullmq+…` address. Touches nothing."""
    from jobwire.backends.bullmq.backend import BullMQ  # noqa: PLC0415 - it needs the driver, the rules do not

    return BullMQ(address)


def client_address(client: object, named: Address) -> Address:
    """The address that a redis-py client reaches, for the protocol and the options of the URL beside it."""
    from jobwire.backends.redisio.client_settings import address_of  # noqa: PLC0415 - as above

    return address_of(client, named)
