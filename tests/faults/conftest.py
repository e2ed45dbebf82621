"""Servers that keep what they acknowledge, one of each kind for all faults, and processes that fork workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from faults.nursery import Nursery
from faults.stores import STORES, Store
from jobwire.embedded import Server

MakeStore = Callable[[str, str], tuple[Store, Nursery]]


@pytest.fixture(scope="session")
def fault_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeStore]:
    """Makes a store of a protocol, in a place of that name, and the process that forks its workers."""
    servers: dict[str, Server] = {}
    nurseries: dict[str, Nursery] = {}
    with ExitStack() as stack:

        def make(protocol: str, place: str) -> tuple[Store, Nursery]:
            kind = STORES[protocol]
            if protocol not in servers:
                servers[protocol] = stack.enter_context(kind.start(tmp_path_factory.mktemp(f"faults-{protocol}")))
                nurseries[protocol] = stack.enter_context(Nursery(kind(servers[protocol], "imports").url))
            return kind(servers[protocol], place), nurseries[protocol]

        yield make
