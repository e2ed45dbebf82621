"""BridgeMQ on Redis and Valkey: jobs routed to workers by server, stack, capabilities and region.

A queue is a job type. All types of a namespace share the spec's lists. `?namespace=` in the URL selects the namespace.
"""

from __future__ import annotations

from jobwire.boundary import Backend
from jobwire.urls import Address

__all__ = ["client_address", "open_backend"]


def open_backend(address: Address) -> Backend:
    """Returns the backend of a `bridgemq+…` address. Does not connect."""
    from jobwire.backends.bridgemq.backend import BridgeMQ  # noqa: PLC0415 - it needs the driver, the rules do not

    return BridgeMQ(address)


def client_address(client: object, named: Address) -> Address:
    """Returns the address of a redis-py client, with the protocol and the options of `named`."""
    from jobwire.backends.redisio.client_settings import address_of  # noqa: PLC0415 - as above

    return address_of(client, named)
