"""Workers killed, servers killed, cables cut, whatever the protocol: what happens, and what must hold afterwards."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from awaiting import eventually
from faults.nursery import nursery
from faults.proxy import Proxy
from jobwire import JobwireError, NewJob, Queue, State, StoreUnavailable, Worker, embedded

_PROGRAM = str(Path(__file__).parent / "worker_program.py")


async def echo(job: Any) -> Any:
    """A handler whose result is the job's data."""
    return job.data


async def start_worker(url: str, concurrency: int) -> asyncio.subprocess.Process:
    """A worker of the queue `work` in a process of its own, for whoever wants to kill it."""
    return await asyncio.create_subprocess_exec(sys.executable, _PROGRAM, url, str(concurrency))


async def is_done(queue: Queue, expected: int) -> bool:
    """Whether so many jobs are completed and none is left; False while the store does not answer."""
    with suppress(StoreUnavailable):
        counts = await queue.counts()
        return counts[State.COMPLETED] >= expected and counts[State.ACTIVE] == counts[State.WAITING] == 0
    return False


async def completed_ids(queue: Queue) -> list[str]:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        page = await queue.jobs(State.COMPLETED, limit=500, cursor=cursor)
        ids += [job.id for job in page]
        if (cursor := page.cursor) is None:
            return ids


async def kill_workers(queue: Queue, url: str, *, jobs: int, kills: int) -> None:
    """Two workers share the jobs, and one is killed and replaced, time and again: each job is completed once."""
    acknowledged = {job.id for job in await queue.add_many([NewJob(number) for number in range(jobs)])}
    async with nursery("worker_program", url) as workers:
        fleet = [await workers.start(url, 10) for _ in range(2)]
        for _ in range(kills):
            before = (await queue.counts())[State.COMPLETED]
            await eventually(lambda than=before + 20: _are_completed(queue, than), within=30)
            workers.kill(fleet.pop(random.randrange(len(fleet))))
            fleet.append(await workers.start(url, 10))
        await eventually(lambda: is_done(queue, len(acknowledged)), within=60)
    ids = await completed_ids(queue)
    assert len(ids) == len(set(ids))
    assert set(ids) == acknowledged


async def _are_completed(queue: Queue, than: int) -> bool:
    counts = await queue.counts()
    return counts[State.COMPLETED] >= than or counts[State.WAITING] == 0


@asynccontextmanager
async def producing(queue: Queue) -> AsyncIterator[set[str]]:
    """One add after another, through every outage; the ids that the store has acknowledged so far."""
    acknowledged: set[str] = set()
    over = False

    async def produce() -> None:
        number = 0
        while not over:
            number += 1
            try:
                acknowledged.add((await queue.add(number)).id)
            except JobwireError:
                await asyncio.sleep(0.05)

    producer = asyncio.create_task(produce())
    try:
        yield acknowledged
    finally:
        over = True
        await producer


async def kill_server(queue: Queue, url: str, server: embedded.Server, *, kills: int) -> None:
    """The server is killed under load, time and again, and its keeper restarts it: what it acknowledged is done."""
    async with Worker("work", echo, url, concurrency=20, lease=2, recover_every=0.5):
        async with producing(queue) as acknowledged:
            for kill in range(kills + 1):
                target = len(acknowledged) + 100
                await eventually(lambda than=target: len(acknowledged) >= than, within=30)
                if kill < kills:
                    os.kill(server.pid, signal.SIGKILL)
        await eventually(lambda: is_done(queue, len(acknowledged)), within=60)
    assert acknowledged <= set(await completed_ids(queue))


async def hurt_the_network(queue: Queue, protocol: str, server: embedded.Server, fault: str, *, times: int) -> None:
    """A worker's connections are reset (`cut`) or its bytes vanish (`swallow`): each time it works again afterwards."""
    port = urlsplit(server.url).port or 0
    async with Proxy(port) as proxy:
        url = f"{protocol}+{server.url.replace(f':{port}/', f':{proxy.port}/')}"
        async with Worker("work", echo, url, concurrency=5, call_timeout=1.0) as worker:
            await (await queue.add(0)).wait(10)
            for number in range(1, times + 1):
                accepted = proxy.accepted
                if fault == "cut":
                    proxy.cut()
                else:
                    proxy.swallow()
                    seen = worker.stats.reconnects
                    await eventually(lambda than=seen: worker.stats.reconnects > than, within=40)
                    proxy.flow()
                assert await (await queue.add(number)).wait(30) == number
                assert proxy.accepted > accepted
