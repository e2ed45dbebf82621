"""Leases: renewed while jobs run, whatever the event loop does; lost ones stop their handler."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Connection, Keep, Queue, State, Worker, connect
from jobwire.boundary import Claim, ConsumerSettings


async def test_a_lease_is_renewed_while_the_handler_blocks_the_event_loop(queue: Queue, connection: Connection) -> None:
    runs: list[str] = []

    async def handler(job: Any) -> str:
        runs.append(job.id)
        time.sleep(2.5)  # more than twice the lease, and nothing else in this loop can run meanwhile
        return "done"

    job = await queue.add(1)
    async with (
        Worker("work", handler, connection, lease=1.0, recover_every=0.1) as worker,
        Thief(connection, lease=1.0) as thief,
    ):
        assert await job.wait(10) == "done"
        assert worker.stats.heartbeats > 0
        assert worker.stats.lost == 0
    assert runs == [job.id]
    assert thief.recovered == 0


class Thief:
    """Another worker's recovery, in a thread and an event loop of its own."""

    def __init__(self, connection: Connection, lease: float) -> None:
        self._url = f"memory:{connection.address.name}"
        self._lease = lease
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.recovered = 0

    async def _run(self) -> None:
        async with connect(self._url) as connection:
            settings = ConsumerSettings("work", "thief", lease=self._lease, recover_every=0.1)
            consumer = connection.backend.consumer(settings)
            while not self._stop.wait(0.1):
                for duty in consumer.duties():
                    self.recovered += len((await duty.run()).recovered)
            await consumer.close()

    async def __aenter__(self) -> Thief:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        await asyncio.to_thread(self._thread.join)


async def test_a_lost_lock_sets_lost_cancels_the_handler_and_is_counted(queue: Queue, connection: Connection) -> None:
    seen: dict[str, Any] = {}

    async def handler(job: Any) -> None:
        seen["job"] = job
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            seen["lost"] = job.lost.is_set()
            raise

    async with Worker("work", handler, connection, lease=0.4) as worker:
        job = await queue.add(1)
        await eventually(lambda: "job" in seen)
        await queue.admin.obliterate(force=True)  # takes the lock away with everything else
        await eventually(lambda: worker.stats.lost == 1)
        assert seen["lost"] is True
        assert worker.busy == 0
    assert await queue.get(job.id) is None


async def test_a_thread_learns_that_its_lock_is_lost(queue: Queue, connection: Connection) -> None:
    noticed = threading.Event()
    running = threading.Event()

    def handler(job: Any) -> None:
        running.set()
        if job.lost.wait(20):
            noticed.set()

    async with Worker("work", handler, connection, lease=0.4):
        await queue.add(1)
        await eventually(running.is_set)
        await queue.admin.obliterate(force=True)
        await eventually(noticed.is_set)


async def test_extend_says_that_the_job_is_gone(queue: Queue, connection: Connection) -> None:
    said: list[str] = []

    async def handler(job: Any) -> None:
        await queue.admin.obliterate(force=True)
        try:
            await job.extend()
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")

    async with Worker("work", handler, connection) as worker:
        await queue.add(1)
        async with asyncio.timeout(10):
            while not said:
                await asyncio.sleep(0.005)
        while worker.stats.lost == 0:
            await asyncio.sleep(0.005)
    assert said[0].startswith("LostLock: job")


async def test_a_worker_of_short_jobs_never_renews(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None: ...

    async with Worker("work", handler, connection, concurrency=10) as worker:
        jobs = [await queue.add(n) for n in range(50)]
        for job in jobs:
            await job.wait(10)
        assert worker.stats.heartbeats == 0


@pytest.mark.slow
async def test_memory_stays_flat_over_many_jobs(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None: ...

    async with Worker("work", handler, connection, concurrency=50) as worker:
        for _ in range(10):
            for n in range(200):
                await queue.add(n, keep_completed=Keep.NONE)
        await eventually(lambda: worker.stats.completed == 2000)
        engines = worker._life.engines
        assert engines is not None
        [engine] = vars(engines)["_engines"].values()
        held = [name for name, value in vars(engine).items() if isinstance(value, (dict, list)) and value]
        assert held == []
        assert not [claim for claim in vars(engine._leases)["_held"] if isinstance(claim, Claim)]
    assert (await queue.counts())[State.ACTIVE] == 0
