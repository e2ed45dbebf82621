"""A queue opens at its first use; once closed it says so, and never that its store is unavailable."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from jobwire.connection import connect
from jobwire.errors import Closed
from jobwire.queue import Queue
from jobwire.worker import Worker

FIRST_USES = {
    "add": lambda queue: queue.add({"n": 1}),
    "get": lambda queue: queue.get("0123456789abcdef01234567"),
    "counts": lambda queue: queue.counts(),
    "jobs": lambda queue: queue.jobs(),
    "iter_jobs": lambda queue: anext(queue.iter_jobs(), None),
    "clean": lambda queue: queue.admin.clean(),
    "drain": lambda queue: queue.admin.drain(),
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES.keys())
async def test_a_queue_opens_at_its_first_use(url, use):
    queue = Queue("letters", url)
    try:
        await use(queue)
        job = await queue.add({"n": 2})
        assert (await queue.get(job.id)).data == {"n": 2}
    finally:
        await queue.close()


async def test_many_first_uses_at_once_open_it_once(url):
    queue = Queue("letters", url)
    try:
        added = await asyncio.gather(*(queue.add(n) for n in range(20)))
        assert sorted(job.data for job in added) == list(range(20))
        assert sum((await queue.counts()).values()) == 20
    finally:
        await queue.close()


async def test_a_queue_that_was_closed_says_so_until_it_is_opened_again(url):
    async with connect(url) as connection:
        queue = Queue("letters", connection)
        await queue.add(1)
        await queue.close()
        for use in FIRST_USES.values():
            with pytest.raises(Closed, match="'letters' has been closed"):
                await use(queue)
        async with queue:
            await queue.add(2)
            assert sum((await queue.counts()).values()) == 2


async def test_a_connection_that_its_owner_closed_is_not_opened_behind_its_back(url):
    connection = connect(url)
    queue = Queue("letters", connection)
    await queue.add(1)
    await connection.close()
    with pytest.raises(Closed, match=r"connection to .* has been closed"):
        await queue.add(2)
    await queue.close()


async def test_closing_waits_for_adds_that_are_under_way(url):
    async with connect(url) as connection, Queue("letters", connection) as reader:
        queue = await Queue("letters", connection).open()
        adds = [asyncio.create_task(queue.add(n)) for n in range(5)]
        await asyncio.sleep(0)
        await queue.close()
        assert all(add.done() for add in adds), adds
        assert sum((await reader.counts()).values()) == 5


_LOOP_AFTER_LOOP = """
import asyncio, sys
from jobwire import Queue, Worker

queue = Queue("letters", sys.argv[1])

async def add(number):
    return await queue.add(number)

async def cut_off():
    tasks = [asyncio.create_task(add(number)) for number in (2, 3)]
    await asyncio.sleep(0)

async def work():
    job = await queue.add(4)
    async with Worker("letters", lambda job: job.data, queue.connection):
        return await job.wait(30)

async def claim():
    job = await queue.add(5)
    claimed = await queue.claim(timeout=10)
    await claimed.complete()
    return claimed.id == job.id

print(asyncio.run(add(1)).queue)
asyncio.run(cut_off())
print(asyncio.run(work()), asyncio.run(claim()))
asyncio.run(queue.close())
"""


def test_a_queue_that_was_not_closed_starts_over_in_the_next_event_loop(url):
    """In a process of its own, since what was left open there is noticed when the process ends."""
    done = subprocess.run(
        [sys.executable, "-c", _LOOP_AFTER_LOOP, url], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["letters", "4", "True"], "")


def test_a_worker_is_used_in_one_event_loop_after_another(url, caplog):
    async def run() -> int:
        await queue.add(1)
        return await worker.run_until_idle(30)

    queue = Queue("letters", url)
    worker = Worker("letters", lambda job: None, queue.connection)
    assert [asyncio.run(closing(queue, run())) for _ in range(2)] == [1, 1]
    assert caplog.record_tuples == []


async def closing(queue, working):
    async with queue:
        return await working
