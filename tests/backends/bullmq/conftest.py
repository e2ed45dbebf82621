"""A real server, and a prefix of its own for every test."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend
from jobwire.connection import load_backend
from jobwire.embedded import Server, binaries
from jobwire.urls import parse

from .dump import dump
from .own_servers import answers, free_ports, running
from .peer import close_peers, node


@pytest.fixture(scope="session", autouse=True)
def node_processes() -> Iterator[None]:
    """Ends the Node processes that tests share."""
    yield
    close_peers()


@pytest.fixture
def prefix() -> str:
    """A key prefix that no other test has."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def keys(prefix: str) -> Keys:
    """The keys of queue `q` under the test's prefix."""
    return Keys(prefix, "q")


@pytest.fixture
async def redis(jobwire_valkey: Server) -> AsyncIterator[Redis]:
    """A plain client, for looking at what is stored and for making states by hand. Replies are bytes."""
    async with Redis.from_url(jobwire_valkey.url) as client:
        yield client


@pytest.fixture
async def backend(jobwire_valkey: Server, prefix: str) -> AsyncIterator[Backend]:
    """BullMQ on the test's prefix, open."""
    backend = load_backend(parse(f"bullmq+{jobwire_valkey.url}?prefix={prefix}"))
    await backend.open()
    yield backend
    await backend.close()


Same = Callable[[str, str, Callable[[Backend], Awaitable[object]]], Awaitable[None]]


@pytest.fixture
def same_as_node(jobwire_valkey: Server, redis: Redis, prefix: str, backend: Backend) -> Same:
    """Asserts that we leave the store as Node does: Node arranges the same state twice, then acts on one of them and
    we on the other. Both scripts see the prefix as `p`."""

    async def compare(arrange: str, act: str, ours: Callable[[Backend], Awaitable[object]]) -> None:
        theirs = f"{prefix}-node"
        script = f"for (const p of prefixes) {{ {arrange} }} {{ const p = prefixes[1]; {act} }}"
        await node(jobwire_valkey.url, [prefix, theirs], script)
        await ours(backend)
        assert await dump(redis, prefix) == await dump(redis, theirs)

    return compare


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[int]:
    """A sentinel with a user and a password of its own, watching a server with another password."""
    program = str(binaries.VALKEY.find())
    server, sentinel = free_ports(2)
    (tmp_path / "server").mkdir()
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {sentinel}\nbind 127.0.0.1\ndir {tmp_path}\nsentinel monitor main 127.0.0.1 {server} 1\n"
        "sentinel auth-pass main server-pw\nrequirepass sentinel-pw\nuser watcher on >watcher-pw ~* &* +@all\n"
    )
    plain = ["--bind", "127.0.0.1", "--port", str(server), "--dir", str(tmp_path / "server"), "--save", ""]
    with running([program, *plain, "--requirepass", "server-pw"]), running([program, str(config), "--sentinel"]):
        async with (
            Redis(port=sentinel, password="sentinel-pw", decode_responses=True) as watcher,
            Redis(port=server, password="server-pw") as watched_server,
        ):
            await eventually(lambda: answers(watcher), within=30)
            await eventually(lambda: answers(watched_server), within=30)
        yield sentinel
