"""Servers that step down or die, and workers that die, under load: what was acknowledged is neither lost nor undone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymongo import MongoClient
from pymongo.errors import AutoReconnect

from awaiting import eventually
from jobwire import Queue, Worker, embedded
from jobwire.embedded import Server
from jobwire.errors import StoreUnavailable
from jobwire.model import State
from jobwire.native import MonqueWorker

pytestmark = pytest.mark.slow

PATIENT = {"lease": 2.0, "recover_every": 0.3, "max_stalled": 1000, "native": MonqueWorker(max_retries=1000)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A durable server of the test's own: this one gets hurt."""
    with embedded.mongo(tmp_path / "mongo") as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return f"monque+{server.url.replace('/?', '/faults?')}"


class Ledger:
    """What the store has acknowledged, and what handlers did."""

    def __init__(self) -> None:
        self.added: dict[str, int] = {}
        self.runs: Counter[int] = Counter()
        self.unsure = 0

    async def produce(self, queue: Queue, until: asyncio.Event) -> None:
        number = 0
        while not until.is_set():
            number += 1
            try:
                job = await queue.add(number)
            except StoreUnavailable:
                self.unsure += 1
                continue
            self.added[job.id] = number

    async def handle(self, job) -> int:
        self.runs[job.data] += 1
        await asyncio.sleep(0.002)
        return job.data * 2

    async def check(self, queue: Queue, worker: Worker) -> None:
        counts = await queue.counts()
        assert counts[State.COMPLETED] == sum(counts.values()) >= len(self.added), dict(counts)
        missing = [number for number in self.added.values() if not self.runs[number]]
        assert missing == []
        assert worker.stats.completed <= counts[State.COMPLETED]
        for job_id, number in list(self.added.items())[:: max(1, len(self.added) // 50)]:
            job = await queue.get(job_id)
            assert (job.state, job.data, job.result) == (State.COMPLETED, number, number * 2)


def step_down(server: Server) -> None:
    """The only member gives up being primary for two seconds; it breaks every connection as it does."""
    with MongoClient(server.url) as client, contextlib.suppress(AutoReconnect):
        client.admin.command({"replSetStepDown": 2, "force": True})


async def drained(queue: Queue) -> bool:
    counts = await queue.counts()
    return counts[State.WAITING] + counts[State.DELAYED] + counts[State.ACTIVE] == 0


@pytest.mark.parametrize("hurt", ["step down", "kill"])
async def test_nothing_acknowledged_is_lost_when_the_primary_goes_under_load(server, url, hurt):
    ledger, over = Ledger(), asyncio.Event()
    async with Queue("work", url) as queue, Worker("work", ledger.handle, url, concurrency=20, **PATIENT) as worker:
        producers = [asyncio.create_task(ledger.produce(queue, over)) for _ in range(4)]
        for _ in range(2):
            before = len(ledger.added)
            await eventually(lambda before=before: len(ledger.added) > before + 300, within=60)
            if hurt == "kill":
                victim = server.pid
                os.kill(victim, signal.SIGKILL)
            else:
                await asyncio.to_thread(step_down, server)
        before = len(ledger.added)
        await eventually(lambda: len(ledger.added) > before + 300, within=60)
        over.set()
        await asyncio.gather(*producers)
        await eventually(lambda: drained(queue), within=60)
        await ledger.check(queue, worker)
    assert worker.stats.completed > 0
    if hurt == "step down":
        assert ledger.unsure == 0, "an add lives through an election"


async def test_an_idle_worker_hears_of_work_again_after_the_primary_stepped_down(server, url, no_polling):
    seen: list[str] = []

    async def handler(job):
        seen.append(job.data)

    async with Queue("work", url) as queue, Worker("work", handler, url, **PATIENT) as worker:
        wakeup = worker.connection.backend._wakeup
        await eventually(lambda: wakeup.listening)
        await asyncio.to_thread(step_down, server)
        await queue.add("first after the election")
        await eventually(lambda: "first after the election" in seen)
        await eventually(lambda: wakeup.listening)
        await queue.add("next")
        await eventually(lambda: "next" in seen)


async def test_a_killed_workers_jobs_are_finished_by_another(url):
    program = Path(__file__).with_name("worker_program.py")
    async with Queue("work", url) as queue:
        added = [await queue.add(n) for n in range(200)]
        victims = [subprocess.Popen([sys.executable, str(program), url, "5"]) for _ in range(2)]

        async def some_are_running():
            counts = await queue.counts()
            return counts[State.ACTIVE] > 0 < counts[State.COMPLETED]

        try:
            await eventually(some_are_running, within=60)
        finally:
            for victim in victims:
                victim.kill()
                victim.wait()
        ledger = Ledger()
        async with Worker("work", ledger.handle, url, concurrency=10, **PATIENT) as worker:
            await eventually(lambda: drained(queue), within=60)
        assert (await queue.counts())[State.COMPLETED] == len(added)
        assert worker.stats.completed > 0
