"""What a readiness endpoint is told."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

from awaiting import eventually
from faults.proxy import Proxy
from jobwire import Connection, Queue, Worker
from jobwire.embedded import Server
from jobwire.observe.health import health


async def _handle(job: Any) -> None: ...


async def test_a_worker_that_claims_from_a_store_that_answers_is_ready(connection: Connection) -> None:
    worker = Worker("emails", _handle, connection)
    before = await health(worker)
    assert (before.ok, before.why, before.connected) == (False, "the worker has not started", True)
    async with worker:
        await eventually(lambda: worker.stats.calls)
        now = await health(worker)
    assert (now.ok, now.why, now.connected, now.started, now.busy) == (True, "", True, True, 0)
    assert now.answered_in is not None


async def test_a_stopping_worker_is_not_ready_and_says_what_it_still_runs(connection: Connection, queue: Queue) -> None:
    free = asyncio.Event()

    async def handle(job: Any) -> None:
        await free.wait()

    async with Worker("emails", handle, connection) as worker:
        await queue.add(1)
        await eventually(lambda: worker.busy == 1)
        worker.interrupt()
        now = await health(worker)
        free.set()
    assert (now.ok, now.why, now.busy) == (False, "stopping: 1 job is still running", 1)


async def test_a_paused_worker_is_not_ready(connection: Connection) -> None:
    worker = Worker("emails", _handle, connection)
    await worker.pause()
    async with worker:
        now = await health(worker)
        assert (now.ok, now.why, now.paused) == (False, "paused: 0 jobs are still running", True)
        worker.resume()
        await eventually(lambda: worker.stats.calls)
        assert (await health(worker)).ok


async def test_a_store_that_falls_silent_makes_its_worker_unready_until_it_answers(
    jobwire_valkey: Server, unique: str
) -> None:
    port = urlsplit(jobwire_valkey.url).port or 0
    async with Proxy(port) as proxy:
        url = f"bullmq+{jobwire_valkey.url.replace(f':{port}/', f':{proxy.port}/')}?prefix={unique}"
        async with Worker("emails", _handle, url, call_timeout=0.5) as worker:
            await eventually(lambda: worker.stats.calls)
            assert (await health(worker)).ok
            proxy.swallow()
            silent = await health(worker, timeout=0.2)
            assert (silent.ok, silent.connected, silent.answered_in) == (False, False, None)
            assert silent.why == "the store has not answered within 0.2 s"
            proxy.flow()
            await eventually(lambda: _ready(worker), within=40)


async def _ready(worker: Worker) -> bool:
    return (await health(worker)).ok


async def test_a_worker_of_several_queues_has_started_once_it_claims_from_all(connection: Connection) -> None:
    worker = Worker({"emails": _handle, "letters": _handle}, url=connection)
    assert (await health(worker)).why == "the worker has not started"
    async with worker:
        await eventually(lambda: all(worker.stats_of(queue).calls for queue in worker.queues))
        assert (await health(worker)).ok
