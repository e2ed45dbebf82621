"""One schema, seen from both languages: `boss` and `queue` are jobwire's, `node` is Node's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from jobwire import Connection, Queue, connect
from jobwire.backends.pgboss import Boss
from jobwire.embedded import Server

from .node import NodeBoss, Peer

QUEUE = "letters"


@pytest.fixture(scope="module")
def peer(jobwire_postgres: Server) -> Iterator[Peer]:
    """A Node process with pg-boss 12.38."""
    with Peer(jobwire_postgres.url) as peer:
        yield peer


@pytest.fixture
def url(jobwire_postgres: Server, unique: str) -> str:
    return f"pgboss+{jobwire_postgres.url}?schema={unique}"


@pytest.fixture
async def node(peer: Peer, unique: str) -> AsyncIterator[NodeBoss]:
    """A quiet Node instance, which made the schema of the test."""
    boss = NodeBoss(peer, unique)
    await boss.start()
    yield boss
    await boss.stop()


@pytest.fixture
async def connection(url: str, node: NodeBoss) -> AsyncIterator[Connection]:
    async with connect(url) as connection:
        yield connection


@pytest.fixture
def boss(connection: Connection) -> Boss:
    return Boss(connection)


@pytest.fixture
async def queue(connection: Connection, node: NodeBoss) -> AsyncIterator[Queue]:
    """A queue that Node made, with Node's defaults and notifications."""
    await node.call("createQueue", QUEUE, {"notify": True})
    async with Queue(QUEUE, connection) as queue:
        yield queue


@pytest.fixture
async def pair(node: NodeBoss, boss: Boss):
    """Make two queues with the same settings: the first is Node's to use, the second ours."""

    async def make(**settings: Any) -> tuple[str, str]:
        for name in ("node", "ours"):
            await node.call("createQueue", f"{name}-dead", {})
            await node.call("createQueue", name, {**settings})
        return "node", "ours"

    return make
