"""Connections that die without a sign: every call ends, workers come back to what they were, and leave when asked."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pymongo import MongoClient

from awaiting import eventually
from jobwire import NewJob, Queue, Worker
from jobwire.backends.monque.connection import store
from jobwire.backends.monque.produce import add
from jobwire.backends.monque.work import consumer
from jobwire.connection import connect
from jobwire.embedded import Server
from jobwire.errors import StoreUnavailable
from jobwire.model import State

from .proxy import Proxy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PROGRAM = str(Path(__file__).with_name("monque_worker.py"))
PATIENT = {"lease": 4.0, "recover_every": 0.5, "max_stalled": 1000}


@pytest.fixture(autouse=True)
def short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the deadlines of calls a third of what they are outside tests."""
    for module, name in ((store, "CALL"), (consumer, "ATTEMPT"), (add, "ATTEMPT"), (add, "_PATIENCE")):
        monkeypatch.setattr(module, name, getattr(module, name) / 3)
    for name in ("wTimeoutMS", "serverSelectionTimeoutMS", "connectTimeoutMS"):
        monkeypatch.setitem(store._DEFAULTS, name, store._DEFAULTS[name] // 3)


@pytest.fixture
def straight(jobwire_mongo: Server, unique: str) -> Iterator[str]:
    """The URL that leads past the proxy."""
    yield f"monque+{jobwire_mongo.url.replace('/?', f'/{unique}?')}"
    with MongoClient(jobwire_mongo.url) as client:
        client.drop_database(unique)


@pytest.fixture
async def proxy(straight: str) -> AsyncIterator[Proxy]:
    port = urlsplit(straight).port
    assert port is not None
    async with Proxy(port) as proxy:
        yield proxy


@pytest.fixture
def url(straight: str, proxy: Proxy) -> str:
    return straight.replace(f":{urlsplit(straight).port}/", f":{proxy.port}/")


async def refused(call) -> float:
    """How long it took until the call was refused as unavailable."""
    since = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await call
    return time.monotonic() - since


async def test_every_call_ends_while_the_connection_is_half_open_and_works_again_afterwards(url, proxy):
    async with Queue("work", url) as queue:
        added = await queue.add(1)
        await asyncio.gather(*(queue.get(added.id) for _ in range(8)))  # some connections for the pool
        proxy.half_open()
        calls = [queue.add(2), queue.get(added.id), queue.counts(), queue.admin.pause(), queue.cancel(added.id)]
        assert max(await asyncio.gather(*map(refused, calls))) < 45
        assert await refused(queue.add(3)) < 30
        proxy.heal()
        assert (await asyncio.wait_for(queue.add(4), 40)).id
        assert (await queue.get(added.id)).id == added.id


async def test_the_deadlines_in_the_url_count_instead_of_ours(url, proxy):
    async with Queue("work", f"{url}&timeoutMS=1000") as queue:
        added = await queue.add(1)
        proxy.half_open()
        assert await refused(queue.get(added.id)) < 5


# A socket of the driver that is cancelled while it connects is closed when it is collected, with this warning.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_calls_that_are_cancelled_at_any_moment_leave_the_client_as_it_was(url, proxy):
    async with connect(url) as connection, Queue("work", connection) as queue:
        added = await queue.add_many([NewJob(n) for n in range(20)])
        for number in range(40):
            if number == 20:
                proxy.half_open()
            calls = [asyncio.create_task(queue.get(random.choice(added).id)) for _ in range(5)]
            await asyncio.sleep(random.uniform(0, 0.01))
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        proxy.heal()
        found = await asyncio.wait_for(asyncio.gather(*(queue.get(one.id) for one in added)), 60)
        assert [job.data for job in found] == list(range(20))


async def test_a_worker_finishes_everything_after_its_connections_died_and_hears_of_work_at_once_again(url, proxy):
    ran: dict[object, float] = {}

    async def handler(job):
        await asyncio.sleep(0.05)
        ran[job.data] = time.monotonic()

    async with Queue("work", url) as queue, Worker("work", handler, url, concurrency=5, **PATIENT) as worker:
        wakeup = worker.connection.backend._wakeup
        await eventually(lambda: wakeup.listening)
        await queue.add_many([NewJob(n) for n in range(40)])
        await eventually(lambda: len(ran) > 10)
        proxy.half_open()
        await eventually(lambda: not worker.connected, within=60)
        await eventually(lambda: not wakeup.listening, within=60)
        proxy.heal()
        await eventually(lambda: len(ran) == 40, within=60)
        await eventually(lambda: wakeup.listening, within=60)
        waits = []
        for number in range(5):
            await asyncio.sleep(0.2)
            asked = time.monotonic()
            await queue.add(f"after {number}")
            await eventually(lambda number=number: f"after {number}" in ran)
            waits.append(ran[f"after {number}"] - asked)
        assert min(waits) < 0.5
        await eventually(lambda: completed(queue, 45), within=60)


async def completed(queue: Queue, number: int) -> bool:
    counts = await queue.counts()
    return counts[State.COMPLETED] == number == sum(counts.values())


@pytest.mark.parametrize("state", ["idle", "busy"])
async def test_a_worker_that_is_asked_to_leave_while_half_open_leaves(straight, url, proxy, state):
    async with Queue("work", straight) as queue:
        program = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, url, "0", "0.5")
        try:
            added = await queue.add_many([NewJob(n) for n in range(5)])
            await eventually(lambda: completed(queue, 5), within=60)
            if state == "busy":
                await queue.add_many([NewJob(n) for n in range(50)])

                async def busy():
                    return (await queue.counts())[State.ACTIVE]

                await eventually(busy)
            proxy.half_open()
            asked = time.monotonic()
            program.send_signal(signal.SIGTERM)
            await asyncio.wait_for(program.wait(), 60)
            # 2 s for its jobs, 3 s for handing them back, and a few for goodbyes on three dead clients.
            assert time.monotonic() - asked < 25
            assert len(added) == 5
        finally:
            with contextlib.suppress(ProcessLookupError):
                program.kill()
            await program.wait()
