"""No call to a Redis server waits for ever: a connection that has gone silent, and one that is reset all the time."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from faults.echo_worker import start_worker
from faults.proxy import Proxy
from jobwire import Queue, StoreUnavailable, Worker, embedded
from jobwire.backends.redisio.connect import RedisStore
from jobwire.embedded import Server
from jobwire.urls import parse

pytestmark = pytest.mark.slow
LONG = 40.0
"""Far more than any deadline, far less than for ever."""


@pytest.fixture(params=["bullmq", "bridgemq"])
def protocol(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def option(protocol: str, unique: str) -> str:
    return f"prefix={unique}" if protocol == "bullmq" else f"namespace={unique}"


@pytest.fixture
async def proxy(jobwire_valkey: Server) -> AsyncIterator[Proxy]:
    async with Proxy(urlsplit(jobwire_valkey.url).port or 0) as started:
        yield started


@pytest.fixture
def url(protocol: str, option: str, proxy: Proxy, jobwire_valkey: Server) -> str:
    """Through the proxy."""
    return f"{protocol}+{proxy.through(jobwire_valkey.url)}?{option}"


@pytest.fixture
async def queue(protocol: str, option: str, jobwire_valkey: Server) -> AsyncIterator[Queue]:
    """Past the proxy."""
    async with Queue("work", f"{protocol}+{jobwire_valkey.url}?{option}") as opened:
        yield opened


async def test_sigterm_ends_an_idle_worker_whose_server_has_gone_silent(queue: Queue, url: str, proxy: Proxy) -> None:
    process = await start_worker(url, 3)
    try:
        await (await queue.add(1)).wait(30)
        await asyncio.sleep(0.2)  # into its wait
        proxy.swallow()
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), LONG)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_busy_worker_stops_within_its_time_whatever_the_server_does(
    queue: Queue, url: str, proxy: Proxy
) -> None:
    started = asyncio.Event()

    async def handle(job: Any) -> None:
        started.set()
        await asyncio.sleep(3600)

    worker = Worker("work", handle, url, concurrency=3, shutdown_timeout=0.5)
    running = asyncio.create_task(worker.run(signals=False))
    await queue.add(1)
    await asyncio.wait_for(started.wait(), 30)
    proxy.swallow()
    await asyncio.wait_for(worker.stop(), LONG)
    await asyncio.wait_for(running, LONG)


async def test_an_add_on_a_silent_connection_is_given_up_and_the_next_one_works(url: str, proxy: Proxy) -> None:
    async with asyncio.timeout(LONG), Queue("work", f"{url}&socket_timeout=1") as queue:
        await queue.add(1)
        proxy.swallow()
        with pytest.raises(StoreUnavailable):
            await queue.add(2)
        proxy.flow()
        await queue.add(3)
        proxy.swallow()  # closing has to end too


async def test_sockets_are_watched_by_the_system(jobwire_valkey: Server) -> None:
    store = RedisStore(parse(f"bullmq+{jobwire_valkey.url}"))
    await store.open()
    try:
        await store.call_bare("PING")
        connection = store.client.connection_pool.make_connection()
        await connection.connect()
        opened = connection._writer.get_extra_info("socket")
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        await connection.disconnect()
    finally:
        await store.close()


async def test_a_worker_that_may_not_wait_for_ever_says_why_it_left(tmp_path: Path) -> None:
    async def handle(job: Any) -> None: ...

    with embedded.valkey(tmp_path) as server:
        url = f"bullmq+{server.url}"
    worker = Worker("work", handle, url, max_reconnect_attempts=2)
    with pytest.raises(StoreUnavailable, match=r"refused|reach"):
        await asyncio.wait_for(worker.run(signals=False), 30)
