"""The in-process twin of a queue server, for users' own tests.

`memory:` is one store for all connections of the process, `memory:name` another one for each name. A store exists while
a connection to it is open, so a test that closes what it opened leaves nothing behind. It follows the rules of the real
protocols (leases, stalled jobs, next attempts, schedules) and encodes what it stores, so that it refuses what a real
store would refuse.

With `?like=` and the name of a protocol (`memory:?like=pgboss`) it has the capabilities and the rules for jobs of that
protocol, and refuses what the protocol refuses, in the same words. It also refuses what the protocol has and this store
can't imitate: routing, transactions, expiry, native options other than an id. The ids that it gives are numbers.
"""

from __future__ import annotations

from jobwire.backends.memory.backend import MemoryBackend
from jobwire.boundary import Backend
from jobwire.urls import Address


def open_backend(address: Address) -> Backend:
    return MemoryBackend(address.name, like=address.options.get("like"))
