"""The in-process twin of a queue server, for users' own tests.

`memory:` is one store for all connections of the process, `memory:name` another one for each name. A store lasts while
a connection to it is open, so that a test which closes what it opened leaves nothing to the next. It keeps to the rules
of the real protocols (leases, stalled jobs, retries, schedules) and encodes what it stores, so that a test finds what a
real store would refuse.

With `?like=` and the name of a protocol (`memory:?like=pgboss`) it has the capabilities and the rules for jobs of that
protocol: what the protocol refuses is refused here in the same words. What the protocol has and this store can't
imitate (routing, transactions, expiry, native options other than an id) is refused as well. Ids that it gives are
numbers.
"""

from __future__ import annotations

from jobwire.backends.memory.backend import MemoryBackend
from jobwire.boundary import Backend
from jobwire.urls import Address


def open_backend(address: Address) -> Backend:
    return MemoryBackend(address.name, like=address.options.get("like"))
