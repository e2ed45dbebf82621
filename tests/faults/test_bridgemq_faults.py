"""Processes killed, servers stopped, cables cut, on BridgeMQ: what was acknowledged is neither lost nor left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis.asyncio

from awaiting import eventually
from faults.proxy import Proxy
from jobwire import JobwireError, NewJob, Queue, State, StoreUnavailable, Worker, embedded

pytestmark = pytest.mark.slow

PROGRAM = str(Path(__file__).parent / "worker_program.py")


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


async def _counts(queue: Queue) -> dict[State, int]:
    with contextlib.suppress(StoreUnavailable):
        return dict(await queue.counts())
    return {}


async def _done(queue: Queue, expected: int) -> bool:
    counts = await _counts(queue)
    return counts.get(State.COMPLETED, 0) >= expected and counts[State.ACTIVE] == counts[State.WAITING] == 0


async def _completed_ids(queue: Queue) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await queue.jobs(State.COMPLETED, limit=500, cursor=cursor)
        ids += [job.id for job in page]
        if (cursor := page.cursor) is None:
            return ids


async def test_workers_killed_under_load_lose_nothing_and_leave_nothing(queue: Queue, server: embedded.Server) -> None:
    acknowledged = {job.id for job in await queue.add_many([NewJob(n) for n in range(1200)])}

    async def start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, PROGRAM, f"bridgemq+{server.url}", "10")

    workers = [await start() for _ in range(2)]
    try:
        for _ in range(6):
            before = (await queue.counts())[State.COMPLETED]

            async def more_are_done(than: int = before + 20) -> bool:
                counts = await queue.counts()
                return counts[State.COMPLETED] >= than or counts[State.WAITING] == 0

            await eventually(more_are_done, within=30)
            victim = workers.pop(random.randrange(len(workers)))
            victim.kill()
            await victim.wait()
            workers.append(await start())
        await eventually(lambda: _done(queue, len(acknowledged)), within=60)
    finally:
        for worker in workers:
            worker.kill()
            await worker.wait()
    ids = await _completed_ids(queue)
    assert len(ids) == len(set(ids))
    assert set(ids) == acknowledged
    async with redis.asyncio.Redis.from_url(server.url, decode_responses=True) as client:
        assert await client.get("bridge:ratelimit:concurrent:work") == "0"
        assert await client.llen("bridge:jobs:waiting") == 0
        assert [key async for key in client.scan_iter(match="bridge:jobs:lock:*")] == []


async def test_a_server_killed_under_load_keeps_what_it_acknowledged(queue: Queue, server: embedded.Server) -> None:
    acknowledged: set[str] = set()
    producing = True

    async def produce() -> None:
        number = 0
        while producing:
            number += 1
            try:
                acknowledged.add((await queue.add(number)).id)
            except JobwireError:
                await asyncio.sleep(0.05)

    async def handle(job: Any) -> int:
        return job.data

    producer = asyncio.create_task(produce())
    async with Worker("work", handle, f"bridgemq+{server.url}", concurrency=20, lease=2, recover_every=0.5):
        for _ in range(2):
            target = len(acknowledged) + 100
            await eventually(lambda t=target: len(acknowledged) >= t, within=30)
            os.kill(server.pid, signal.SIGKILL)
        target = len(acknowledged) + 100
        await eventually(lambda: len(acknowledged) >= target, within=30)
        producing = False
        await producer
        await eventually(lambda: _done(queue, len(acknowledged)), within=60)
    assert acknowledged <= set(await _completed_ids(queue))


@pytest.mark.parametrize("fault", ["cut", "swallow"])
async def test_a_worker_survives_its_network(queue: Queue, server: embedded.Server, fault: str) -> None:
    async def handle(job: Any) -> int:
        return job.data

    async with Proxy(urlsplit(server.url).port or 0) as proxy:
        url = f"bridgemq+redis://127.0.0.1:{proxy.port}/0"
        async with Worker("work", handle, url, concurrency=5, call_timeout=1.0) as worker:
            await (await queue.add(0)).wait(10)
            for number in range(1, 3):
                if fault == "cut":
                    proxy.cut()
                else:
                    proxy.swallow()
                    seen = worker.stats.reconnects
                    await eventually(lambda s=seen: worker.stats.reconnects > s, within=40)
                    proxy.flow()
                assert await (await queue.add(number)).wait(30) == number


async def test_another_worker_leads_when_the_leader_is_killed(queue: Queue, server: embedded.Server, url: str) -> None:
    async with redis.asyncio.Redis.from_url(server.url, decode_responses=True) as client:
        victim = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, url, "1")
        try:
            first = await eventually(lambda: client.get("bridge:scheduler:lock"))
        finally:
            victim.kill()
            await victim.wait()
        assert await client.ttl("bridge:scheduler:lock") > 20
        await client.expire("bridge:scheduler:lock", 1)  # what waiting for the rest of its 30 s would come to

        async def handle(job: Any) -> None: ...

        async with Worker("work", handle, url):

            async def another_leads() -> bool:
                return await client.get("bridge:scheduler:lock") not in (None, first)

            await eventually(another_leads)


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
            process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, url, "1")
            stack.push_async_callback(process.wait)
            stack.callback(process.kill)
            return process

        async def ticks_more(number: int) -> None:
            target = len(ticks) + number
            await eventually(lambda: len(ticks) >= target)

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
    async def handle(job: Any) -> None: ...

    with embedded.valkey(tmp_path) as server:
        worker = Worker("work", handle, f"bridgemq+{server.url}", call_timeout=1.0)
        async with worker:
            await eventually(lambda: worker.stats.calls > 0)
            os.kill(server.pid, signal.SIGSTOP)
            try:
                await asyncio.wait_for(worker.stop(now=True), 30)
            finally:
                os.kill(server.pid, signal.SIGCONT)
