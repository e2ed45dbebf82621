"""Real processes killed, servers stopped, cables cut: what was acknowledged is done, and done once in the store."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from awaiting import eventually
from faults import siege
from faults.siege import echo
from jobwire import Queue, StoreUnavailable, Worker, embedded

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[embedded.Server]:
    with embedded.valkey(tmp_path) as started:
        yield started


@pytest.fixture
async def queue(server: embedded.Server) -> AsyncIterator[Queue]:
    async with Queue("work", f"bullmq+{server.url}") as opened:
        yield opened


async def test_workers_killed_under_load_lose_nothing(queue: Queue, server: embedded.Server) -> None:
    await siege.kill_workers(queue, f"bullmq+{server.url}", jobs=1500, kills=8)


async def test_a_server_killed_under_load_keeps_what_it_acknowledged(
    queue: Queue, server: embedded.Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "jobwire.worker")
    await siege.kill_server(queue, f"bullmq+{server.url}", server, kills=3)
    assert "the store answers again" in caplog.text


async def test_a_server_that_hangs_is_waited_for(queue: Queue, server: embedded.Server) -> None:
    async with Worker("work", echo, f"bullmq+{server.url}", concurrency=5, call_timeout=0.5) as worker:
        await (await queue.add(1)).wait(10)
        pid = server.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            await eventually(lambda: worker.stats.reconnects >= 2, within=40)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert await (await queue.add(2)).wait(20) == 2


@pytest.mark.parametrize("fault", ["cut", "swallow"])
async def test_a_worker_survives_its_network(queue: Queue, server: embedded.Server, fault: str) -> None:
    """The loudest complaint about workers of this kind: after a reconnect they run, and do nothing."""
    await siege.hurt_the_network(queue, "bullmq", server, fault, times=3)


async def test_a_script_flush_is_healed(queue: Queue, server: embedded.Server) -> None:
    async with (
        redis.asyncio.Redis.from_url(server.url) as client,
        Worker("work", echo, f"bullmq+{server.url}", concurrency=2),
    ):
        for number in range(5):
            await client.script_flush()
            assert await (await queue.add(number)).wait(10) == number


async def test_a_worker_that_may_not_wait_for_ever_says_why_it_left(tmp_path: Path) -> None:
    async def handle(job: Any) -> None: ...

    with embedded.valkey(tmp_path) as server:
        url = f"bullmq+{server.url}"
    worker = Worker("work", handle, url, max_reconnect_attempts=2)
    with pytest.raises(StoreUnavailable, match=r"refused|reach"):
        await asyncio.wait_for(worker.run(signals=False), 30)
