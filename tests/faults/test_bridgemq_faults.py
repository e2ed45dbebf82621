"""Processes killed, servers stopped, cables cut, on BridgeMQ: what was acknowledged is neither lost nor left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis.asyncio

from awaiting import eventually
from faults.echo_worker import echo, start_worker
from faults.proxy import Proxy
from jobwire import NewJob, Queue, Worker, embedded

pytestmark = pytest.mark.slow

_WRONG_CLOCK = str(Path(__file__).parent / "wrong_clock.py")
_FIVE_MINUTES = [300, -300]
_SOON = 60
"""Seconds, also on a busy machine: far from the five minutes by which clocks are wrong."""


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

            def are_there() -> bool:
                if watching.done():
                    watching.result()  # raises what ended it
                return len(ticks) >= target

            await eventually(are_there, within=60)

        watching = asyncio.create_task(watch())
        stack.callback(watching.cancel)
        await queue.schedule("tick", cron="* * * * * *", data=1)
        first = await start()
        await ticks_more(2)
        leader = await client.get("bridge:scheduler:lock")
        first.send_signal(signal.SIGSTOP)
        await client.expire("bridge:scheduler:lock", 1)  # what waiting for the rest of its 30 s would come to
        await start()
        await ticks_more(1)
        other = await client.get("bridge:scheduler:lock")
        assert other not in (None, leader)
        first.send_signal(signal.SIGCONT)
        await ticks_more(2)
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


@pytest.mark.parametrize("concurrency", [1, 10])
async def test_a_worker_that_is_stopped_over_a_slow_link_leaves_no_job_active(
    queue: Queue, server: embedded.Server, concurrency: int
) -> None:
    """It is stopped when the server has given it a job, and the answer is still under way."""
    async with contextlib.AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(Proxy(urlsplit(server.url).port or 0))
        client = await stack.enter_async_context(redis.asyncio.Redis.from_url(server.url))
        url = f"bridgemq+{proxy.through(server.url)}"
        async with Worker("work", echo, url, concurrency=concurrency) as worker:
            await eventually(lambda: worker.stats.calls > 0)
            proxy.delay = 0.3
            job = await queue.add(1)
            await eventually(lambda: client.exists("bridge:jobs:active"))
        assert await client.smembers("bridge:jobs:active") == set()
        assert await job.wait(5) == 1


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
async def test_a_signal_ends_a_worker_whose_connections_are_half_open(
    queue: Queue, server: embedded.Server, busy: bool
) -> None:
    async with Proxy(urlsplit(server.url).port or 0) as proxy:
        process = await start_worker(f"bridgemq+{proxy.through(server.url)}", 5)
        try:
            await (await queue.add(0)).wait(60)
            if busy:
                await queue.add_many([NewJob(number) for number in range(500)])
            proxy.swallow()
            await asyncio.sleep(2)  # its calls, listener and duties are all waiting for an answer that never comes
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 50)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        assert time.monotonic() - began < 45, "30 s for running jobs, then some for leaving"


async def start_wrong_clock(ahead: int, url: str, *args: str, **options: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, _WRONG_CLOCK, str(ahead), url, *args, **options)


@contextlib.asynccontextmanager
async def worker_with_wrong_clock(ahead: int, url: str) -> AsyncIterator[None]:
    process = await start_wrong_clock(ahead, url)
    try:
        yield
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("ahead", _FIVE_MINUTES)
async def test_a_worker_whose_clock_is_wrong_runs_delayed_jobs_when_they_are_due(
    queue: Queue, url: str, ahead: int
) -> None:
    async with worker_with_wrong_clock(ahead, url):
        await (await queue.add(None)).wait(30)
        began = time.time()
        jobs = [await queue.add(None, delay=1), await queue.add(None, run_at=datetime.now(UTC) + timedelta(seconds=1))]
        for job in jobs:
            ran_at = await job.wait(_SOON)
            assert 0.95 <= ran_at - began <= _SOON, "before it was due, or long after"
            stored = await queue.get(job.id)
            assert stored is not None
            assert stored.started_at is not None
            assert stored.finished_at is not None
            assert abs(stored.started_at.timestamp() - ran_at) < _SOON
            assert abs(stored.finished_at.timestamp() - ran_at) < _SOON


@pytest.mark.parametrize("ahead", _FIVE_MINUTES)
async def test_a_producer_whose_clock_is_wrong_delays_a_job_by_what_it_asked_for(
    queue: Queue, url: str, ahead: int
) -> None:
    async with worker_with_wrong_clock(0, url):
        await (await queue.add(None)).wait(30)
        producer = await start_wrong_clock(ahead, url, "2", stdout=asyncio.subprocess.PIPE)
        out, _ = await producer.communicate()
        began, job_id = out.decode().split()
        assert 1.95 <= await queue.wait(job_id, _SOON) - float(began) <= _SOON


@pytest.mark.parametrize("ahead", _FIVE_MINUTES)
async def test_a_leader_whose_clock_is_wrong_ticks_once_a_second(queue: Queue, url: str, ahead: int) -> None:
    await queue.schedule("tick", cron="* * * * * *", extra={"cronMode": "instance"})
    async with worker_with_wrong_clock(ahead, url):

        async def ran() -> list[float]:
            return sorted([job.result for job in await queue.jobs("completed", limit=1000)])

        async def four() -> list[float]:
            return seen if len(seen := await ran()) >= 4 else []

        ticks = await eventually(four, within=_SOON)
        assert ticks[-1] - ticks[0] > 1.9, "four ticks of a second each"
        assert time.time() - ticks[-1] < _SOON


async def test_workers_whose_clocks_disagree_leave_each_other_s_running_jobs_alone(queue: Queue, url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for ahead in (*_FIVE_MINUTES, 0):
            await stack.enter_async_context(worker_with_wrong_clock(ahead, url))
        jobs = await queue.add_many([NewJob(3) for _ in range(6)])
        began = time.time()
        for job in jobs:
            assert await job.wait(_SOON) - began < _SOON
        stored = [await queue.get(job.id) for job in jobs]
        assert [job and job.attempts_made for job in stored] == [1] * 6
    async with redis.asyncio.Redis.from_url(urlsplit(url).geturl().removeprefix("bridgemq+")) as client:
        assert await client.hgetall("bridge:x:stalls") == {}
