"""Real processes killed, servers stopped, cables cut: what was acknowledged is done, and done once in the store."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

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
async def queue(server: embedded.Server) -> AsyncIterator[Queue]:
    async with Queue("work", f"bullmq+{server.url}") as opened:
        yield opened


async def _done(queue: Queue, expected: int) -> bool:
    with contextlib.suppress(StoreUnavailable):
        counts = await queue.counts()
        return counts[State.COMPLETED] >= expected and counts[State.ACTIVE] == 0
    return False


async def _completed_ids(queue: Queue) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await queue.jobs(State.COMPLETED, limit=500, cursor=cursor)
        ids += [job.id for job in page]
        if (cursor := page.cursor) is None:
            return ids


async def test_workers_killed_under_load_lose_nothing(queue: Queue, server: embedded.Server) -> None:
    acknowledged = {job.id for job in await queue.add_many([NewJob(n) for n in range(1500)])}

    async def start() -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(sys.executable, PROGRAM, f"bullmq+{server.url}", "10")

    workers = [await start() for _ in range(2)]
    try:
        for _ in range(8):
            before = (await queue.counts())[State.COMPLETED]
            await eventually(lambda b=before: _completed_more(queue, b + 20), within=30)
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


async def _completed_more(queue: Queue, than: int) -> bool:
    counts = await queue.counts()
    return counts[State.COMPLETED] >= than or counts[State.WAITING] == 0


async def test_a_server_killed_under_load_keeps_what_it_acknowledged(
    queue: Queue, server: embedded.Server, caplog: pytest.LogCaptureFixture
) -> None:
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
    caplog.set_level(logging.INFO, "jobwire.worker")
    async with Worker("work", handle, f"bullmq+{server.url}", concurrency=20, lease=2, recover_every=0.5):
        for _ in range(3):
            target = len(acknowledged) + 100
            await eventually(lambda t=target: len(acknowledged) >= t, within=30)
            os.kill(server.pid, signal.SIGKILL)
        target = len(acknowledged) + 100
        await eventually(lambda: len(acknowledged) >= target, within=30)
        producing = False
        await producer
        await eventually(lambda: _done(queue, len(acknowledged)), within=60)
    assert acknowledged <= set(await _completed_ids(queue))
    assert "the store answers again" in caplog.text


async def test_a_server_that_hangs_is_waited_for(queue: Queue, server: embedded.Server) -> None:
    async def handle(job: Any) -> int:
        return job.data

    async with Worker("work", handle, f"bullmq+{server.url}", concurrency=5, call_timeout=0.5) as worker:
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

    async def handle(job: Any) -> int:
        return job.data

    async with Proxy(urlsplit(server.url).port or 0) as proxy:
        url = f"bullmq+redis://127.0.0.1:{proxy.port}/0"
        async with Worker("work", handle, url, concurrency=5, call_timeout=1.0) as worker:
            await (await queue.add(0)).wait(10)
            for number in range(1, 4):
                if fault == "cut":
                    proxy.cut()
                else:
                    proxy.swallow()
                    seen = worker.stats.reconnects
                    await eventually(lambda s=seen: worker.stats.reconnects > s, within=40)
                    proxy.flow()
                assert await (await queue.add(number)).wait(30) == number
            assert proxy.accepted > 4


async def test_a_script_flush_is_healed(queue: Queue, server: embedded.Server) -> None:
    import redis.asyncio

    async def handle(job: Any) -> int:
        return job.data

    async with (
        redis.asyncio.Redis.from_url(server.url) as client,
        Worker("work", handle, f"bullmq+{server.url}", concurrency=2),
    ):
        for number in range(5):
            await client.script_flush()
            assert await (await queue.add(number)).wait(10) == number


async def test_a_worker_that_may_not_wait_for_ever_says_why_it_left(tmp_path: Path) -> None:
    async def handle(job: Any) -> None: ...

    with embedded.valkey(tmp_path) as server:
        url = f"bullmq+{server.url}"
    worker = Worker("work", handle, url, max_reconnect_attempts=2)
    with pytest.raises(StoreUnavailable, match=r"Connect call failed|refused|reach"):
        await asyncio.wait_for(worker.run(signals=False), 30)
