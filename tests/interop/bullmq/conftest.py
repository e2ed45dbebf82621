"""One queue, seen from both languages: `queue` is jobwire's, `node` is Node's, once per major of BullMQ."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire.embedded import Server

from ..peer import NodeJob, NodeQueue, Peer

QUEUE = "letters"
MAJORS = {"node-5.62": "bullmq", "node-6.7": "bullmq-6"}


@pytest.fixture(scope="module", params=MAJORS.values(), ids=MAJORS.keys())
def peer(request: pytest.FixtureRequest, jobwire_valkey: Server) -> Iterator[Peer]:
    """A Node process of one major."""
    with Peer(request.param, jobwire_valkey.url) as peer:
        yield peer


@pytest.fixture(scope="module")
def both_majors(jobwire_valkey: Server) -> Iterator[dict[str, Peer]]:
    """A Node process of each major, for tests in which they meet: `5` and `6`."""
    with Peer("bullmq", jobwire_valkey.url) as five, Peer("bullmq-6", jobwire_valkey.url) as six:
        yield {"5": five, "6": six}


@pytest.fixture
def doomed(peer: Peer, jobwire_valkey: Server, unique: str) -> Iterator[NodeQueue]:
    """The queue through a Node process of the same major that the test may kill."""
    with Peer(peer.package, jobwire_valkey.url) as victim:
        yield NodeQueue(victim, unique, QUEUE)


@pytest.fixture
def url(jobwire_valkey: Server, unique: str) -> str:
    return f"bullmq+{jobwire_valkey.url}?prefix={unique}"


@pytest.fixture
def node(peer: Peer, unique: str) -> NodeQueue:
    return NodeQueue(peer, unique, QUEUE)


@pytest.fixture
def finished_in_node(node: NodeQueue) -> Callable[[str], Awaitable[NodeJob]]:
    """Await the end of a job; the job as Node reads it."""

    async def wait(job_id: str) -> NodeJob:
        async def look() -> NodeJob | None:
            job = await node.get(job_id)
            return job if job is not None and job.finished else None

        return await eventually(look)

    return wait


@pytest.fixture
async def blocked_workers(jobwire_valkey: Server, unique: str) -> AsyncIterator[Callable[[int], Awaitable[Any]]]:
    """Await that this many workers of the queue, in whatever language, sleep until the store wakes them."""
    name = f"{unique}:{base64.b64encode(QUEUE.encode()).decode()}"
    async with Redis.from_url(jobwire_valkey.url, decode_responses=True) as client:

        async def wait(count: int) -> Any:
            async def look() -> Any:
                clients = await client.client_list()
                asleep = [one for one in clients if one["name"].startswith(name) and one["cmd"] == "bzpopmin"]
                return len(asleep) == count and asleep

            return await eventually(look)

        yield wait
