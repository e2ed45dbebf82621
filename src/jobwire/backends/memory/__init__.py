"""The in-process twin of a queue server, for users' own tests.

`memory:` is a fresh store for each connection; `memory:name` is one store for every connection of that name in the
process, and lasts while one of them is open. It keeps to the rules of the real protocols (leases, stalled jobs,
retries, schedules) and encodes what it stores, so that a test finds what a real store would refuse.
"""

from __future__ import annotations

from jobwire.backend import Backend
from jobwire.backends.memory.backend import MemoryBackend
from jobwire.urls import Address


def open_backend(address: Address) -> Backend:
    return MemoryBackend(address.name)
