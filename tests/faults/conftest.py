"""Servers that keep what they acknowledge, one of each kind for all faults, and processes that fork workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from faults.nursery import Nursery
from faults.stores import Store
from faults.stores.store import Running

MakeStore = Callable[[type[Store], str], tuple[Store, Nursery]]


@pytest.fixture(scope="session")
def fault_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeStore]:
    """Makes a store of a kind, in a place of that name, and the process that forks its workers."""
    servers: dict[type[Store], Running] = {}
    nurseries: dict[type[Store], Nursery] = {}
    with ExitStack() as stack:

        def make(kind: type[Store], place: str) -> tuple[Store, Nursery]:
            if kind not in servers:
                servers[kind] = stack.enter_context(kind.start(tmp_path_factory.mktemp(f"faults-{kind.__name__}")))
                nurseries[kind] = stack.enter_context(Nursery(kind(servers[kind], "imports").url))
            return kind(servers[kind], place), nurseries[kind]

        yield make
