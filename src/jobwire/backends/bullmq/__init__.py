"""BullMQ on Redis and Valkey: queues shared with Node.js workers and producers of bullmq 5 and 6."""

from __future__ import annotations

from jobwire.boundary import Backend
from jobwire.urls import Address


def open_backend(address: Address) -> Backend:
    """Returns the backend of a `bullmq+…` address. Does not connect."""
    from jobwire.backends.bullmq.backend import BullMQ  # noqa: PLC0415 - it needs the driver, the rules do not

    return BullMQ(address)


def client_address(client: object, named: Address) -> Address:
    """Returns the address of a redis-py client, with the protocol and the options of `named`."""
    from jobwire.backends.redisio.client_settings import address_of  # noqa: PLC0415 - as above

    return address_of(client, named)
