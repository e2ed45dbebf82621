"""Processes killed, servers stopped, cables cut, on BridgeMQ: what was acknowledged is neither lost nor left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis.asyncio

from awaiting import eventually
from faults import siege
from faults.siege import echo, start_worker
from jobwire import Queue, Worker, embedded

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[embedded.Server]:
    with embedded.valkey(tmp_path) as started:
        yield started


@pytest.fixture
def url(server: embedded.Server) -> str:
    return f"bridgemq+{server.url}"


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    async with Queue("work", url) as opened:
        yield opened


async def test_workers_killed_under_load_lose_nothing_and_leave_nothing(
    queue: Queue, url: str, server: embedded.Server
) -> None:
    await siege.kill_workers(queue, url, jobs=1200, kills=6)
    async with redis.asyncio.Redis.from_url(server.url, decode_responses=True) as client:
        assert await client.get("bridge:ratelimit:concurrent:work") == "0"
        assert await client.llen("bridge:jobs:waiting") == 0
        assert [key async for key in client.scan_iter(match="bridge:jobs:lock:*")] == []


async def test_a_server_killed_under_load_keeps_what_it_acknowledged(
    queue: Queue, url: str, server: embedded.Server
) -> None:
    await siege.kill_server(queue, url, server, kills=2)


@pytest.mark.parametrize("fault", ["cut", "swallow"])
async def test_a_worker_survives_its_network(queue: Queue, server: embedded.Server, fault: str) -> None:
    await siege.hurt_the_network(queue, "bridgemq", server, fault, times=2)


async def test_another_worker_leads_when_the_leader_is_killed(queue: Queue, server: embedded.Server, url: str) -> None:
    async with redis.asyncio.Redis.from_url(server.url, decode_responses=True) as client:
        victim = await start_worker(url, 1)
        try:
            first = await eventually(lambda: client.get("bridge:scheduler:lock"), within=60)
        finally:
            victim.kill()
            await victim.wait()
        assert await client.ttl("bridge:scheduler:lock") > 20
        await client.expire("bridge:scheduler:lock", 1)  # what waiting for the rest of its 30 s would come to

        async with Worker("work", echo, url):

            async def another_leads() -> bool:
                return await client.get("bridge:scheduler:lock") not in (None, first)

            await eventually(another_leads, within=60)


async def test_a_leader_that_was_stopped_beyond_its_lease_ticks_no_more_when_it_wakes_up(
    queue: Queue, server: embedded.Server, url: str
) -> None:
    ticks: list[int] = []
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(redis.asyncio.Redis.from_url(server.url, decode_responses=True))
        monitor = await stack.enter_async_context(client.monitor())

        async def watch() -> None:
            async for seen in monitor.listen():
                words = seen["command"].split()
                if words[:2] == ["ZADD", "bridge:jobs:cron"] and seen["client_type"] == "lua":
                    ticks.append(int(words[2]))

        async def start() -> asyncio.subprocess.Process:
            process = await start_worker(url, 1)
            stack.push_async_callback(process.wait)
            stack.callback(process.kill)
            return process

        async def ticks_more(number: int) -> None:
            target = len(ticks) + number
            await eventually(lambda: len(ticks) >= target, within=60)

        watching = asyncio.create_task(watch())
        stack.callback(watching.cancel)
        await queue.schedule("tick", cron="* * * * * *", data=1)
        first = await start()
        await ticks_more(2)
        leader = await client.get("bridge:scheduler:lock")
        first.send_signal(signal.SIGSTOP)
        await client.expire("bridge:scheduler:lock", 1)  # what waiting for the rest of its 30 s would come to
        await start()
        await ticks_more(2)
        other = await client.get("bridge:scheduler:lock")
        assert other not in (None, leader)
        first.send_signal(signal.SIGCONT)
        await ticks_more(3)
        assert await client.get("bridge:scheduler:lock") == other
    assert ticks == sorted(set(ticks)), "a tick was made twice"


async def test_a_worker_stops_although_its_server_is_gone(tmp_path: Path) -> None:
    with embedded.valkey(tmp_path) as server:
        worker = Worker("work", echo, f"bridgemq+{server.url}", call_timeout=1.0)
        async with worker:
            await eventually(lambda: worker.stats.calls > 0)
            os.kill(server.pid, signal.SIGSTOP)
            try:
                await asyncio.wait_for(worker.stop(now=True), 30)
            finally:
                os.kill(server.pid, signal.SIGCONT)
