"""A server of its own with a database for each side, and the two interpreters on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from redis import Redis

from jobwire import embedded
from jobwire.embedded import Server

from .fleet import Fleet
from .interpreter import JobwireInterpreter
from .peer_process import NodeInterpreter
from .rig import Rig

PEERS = {"bullmq": 1, "bullmq-6": 2}
OURS, SHARED = 3, 4


@pytest.fixture(scope="session")
def differential_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Not the server that tests share: databases are emptied between scenarios."""
    with embedded.valkey(tmp_path_factory.mktemp("differential"), durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def jobwire_interpreter(differential_server: Server) -> Iterator[JobwireInterpreter]:
    with closing(JobwireInterpreter(differential_server.url, OURS)) as interpreter:
        yield interpreter


def _rig(server: Server, ours: JobwireInterpreter, package: str) -> Iterator[Rig]:
    root = server.url.rsplit("/", 1)[0]
    with (
        closing(NodeInterpreter(package, server.url, PEERS[package])) as peer,
        Redis.from_url(f"{root}/{PEERS[package]}") as theirs,
        Redis.from_url(f"{root}/{OURS}") as own,
    ):
        yield Rig(peer, ours, (theirs, own))


@pytest.fixture(scope="session")
def rig(differential_server: Server, jobwire_interpreter: JobwireInterpreter) -> Iterator[Rig]:
    """jobwire beside BullMQ 5.62.0."""
    yield from _rig(differential_server, jobwire_interpreter, "bullmq")


@pytest.fixture(scope="session")
def rig_6(differential_server: Server, jobwire_interpreter: JobwireInterpreter) -> Iterator[Rig]:
    """jobwire beside BullMQ 6.7.0."""
    yield from _rig(differential_server, jobwire_interpreter, "bullmq-6")


@pytest.fixture(scope="session")
def fleets(differential_server: Server, rig: Rig) -> Iterator[dict[str, Rig]]:
    """BullMQ 5.62.0 alone beside mixed fleets: it and jobwire share a database, and the parts in it."""
    root = differential_server.url.rsplit("/", 1)[0]
    with (
        closing(NodeInterpreter("bullmq", differential_server.url, SHARED)) as theirs,
        closing(JobwireInterpreter(differential_server.url, SHARED)) as ours,
        Redis.from_url(f"{root}/{SHARED}") as shared,
    ):
        databases = (rig.redis[0], shared)
        yield {
            "our workers": Rig(rig.peer, Fleet(producer=theirs, worker=ours), databases),
            "our producers": Rig(rig.peer, Fleet(producer=ours, worker=theirs), databases),
        }
