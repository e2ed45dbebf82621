"""Claims by hand that wait, come together, are cancelled, or outlive their connections."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from faults.proxy import Proxy
from jobwire import Rate, claimer
from jobwire.boundary import Feature
from jobwire.errors import Closed, InvalidOption, NotSupported, StoreUnavailable, WrongState
from jobwire.model import State
from jobwire.options import NewJob
from jobwire.queue import Queue

from .conftest import QUEUE


@pytest.fixture
def until_waiting(eventually, monkeypatch):
    """Await that a claim of the queue has looked, and waits for the store. It will not look again unasked."""
    monkeypatch.setattr(claimer, "_LONGEST_WAIT", 3600.0)

    async def wait(queue):
        await eventually(lambda: any(one._wait for _, one in queue._claimers._made))

    return wait


async def state_of(queue, job):
    return (await queue.get(job.id)).state


async def test_claims_at_a_time_get_different_jobs(queue):
    added = await queue.add_many([NewJob(n) for n in range(10)])
    jobs = await asyncio.gather(*(queue.claim() for _ in range(12)))
    taken = [job for job in jobs if job is not None]
    assert sorted(job.id for job in taken) == sorted(job.id for job in added)
    assert jobs.count(None) == 2
    await asyncio.gather(*(job.complete(job.data) for job in taken))
    assert (await queue.counts())[State.COMPLETED] == 10


async def test_a_claim_waits_for_a_job(queue, until_waiting):
    claiming = asyncio.create_task(queue.claim(timeout=None))
    await until_waiting(queue)
    added = await queue.add(1)
    job = await asyncio.wait_for(claiming, 60)
    assert job.id == added.id
    await job.complete()


async def test_a_claim_waits_for_a_job_that_comes_due(queue):
    added = await queue.add(1, delay=0.3)
    job = await queue.claim(timeout=timedelta(seconds=60))
    assert job.id == added.id


async def test_a_claim_ends_when_its_time_is_over(queue):
    began = time.monotonic()
    assert await queue.claim(timeout=0.3) is None
    assert time.monotonic() - began >= 0.299


async def test_claims_that_wait_together_are_all_served(queue, until_waiting):
    claiming = [asyncio.create_task(queue.claim(timeout=60)) for _ in range(5)]
    await until_waiting(queue)
    added = [await queue.add(n) for n in range(5)]
    jobs = await asyncio.gather(*claiming)
    assert sorted(job.id for job in jobs) == sorted(job.id for job in added)


async def test_a_claim_without_time_is_answered_while_another_waits(queue, until_waiting):
    claiming = asyncio.create_task(queue.claim(timeout=60))
    await until_waiting(queue)
    assert await asyncio.wait_for(queue.claim(), 30) is None
    await queue.add(1)
    assert await claiming is not None


async def test_a_worker_takes_the_jobs_that_a_claim_stopped_waiting_for(queue, until_waiting, work, finished):
    claiming = asyncio.create_task(queue.claim(timeout=60))
    await until_waiting(queue)
    claiming.cancel()
    await asyncio.wait([claiming])

    async def handler(job):
        return job.data

    async with work(handler):
        added = [await queue.add(n) for n in range(3)]
        assert [(await finished(queue, job.id)).state for job in added] == [State.COMPLETED] * 3


async def test_a_cancelled_claim_leaves_no_job_behind(queue, eventually):
    """Whenever the cancellation comes: before the call, while it is under way, or when its answer is there."""
    for turns in range(40):
        added = await queue.add(turns)
        claiming = asyncio.create_task(queue.claim())
        for _ in range(turns // 2):
            await asyncio.sleep(0)
        claiming.cancel()
        await asyncio.wait([claiming])
        if not claiming.cancelled():
            await claiming.result().release()

        async def take(added=added):
            job = await queue.claim()
            return job if job is not None and job.id == added.id else None

        job = await eventually(take)
        assert job.attempts_made == 0
        await job.complete()


async def test_a_paused_queue_gives_nothing_until_it_is_resumed(queue, needs, until_waiting):
    with needs(queue, Feature.PAUSE):
        await queue.admin.pause()
        added = await queue.add(1)
        assert await queue.claim() is None
        claiming = asyncio.create_task(queue.claim(timeout=60))
        await until_waiting(queue)
        await queue.admin.resume()
        assert (await claiming).id == added.id


async def test_a_rate_limited_queue_gives_its_next_job_when_the_window_ends(queue, needs):
    with needs(queue, Feature.LIMITS):
        await queue.admin.limit_rate(Rate(1, per=0.5))
        await queue.add_many([NewJob(1), NewJob(2)])
        first = await queue.claim()
        assert await queue.claim() is None
        second = await queue.claim(timeout=60)
        assert (first.data, second.data) == (1, 2)


async def test_a_queue_that_is_closed_releases_what_it_holds(queue, connection, caplog):
    added = await queue.add_many([NewJob(1), NewJob(2)])
    async with Queue(QUEUE, connection) as other:
        kept, done = await other.claim(), await other.claim(lease=60)
        await done.complete()
    assert [await state_of(queue, job) for job in added] == [State.WAITING, State.COMPLETED]
    assert (await queue.get(kept.id)).attempts_made == 0
    assert f"1 unsettled job ({kept.id})" in caplog.text
    with pytest.raises(WrongState, match="its queue was closed"):
        await kept.complete()


async def test_closing_ends_claims_that_wait(queue, connection, until_waiting):
    other = await Queue(QUEUE, connection).open()
    claiming = asyncio.create_task(other.claim(timeout=None))
    await until_waiting(other)
    await other.close()
    with pytest.raises(Closed):
        await claiming
    with pytest.raises(Closed):
        await other.claim()


async def test_a_queue_that_is_opened_again_claims_again(queue, connection):
    other = await Queue(QUEUE, connection).open()
    assert await other.claim() is None
    await other.close()
    async with other:
        await queue.add(1)
        job = await other.claim()
        await job.complete()


async def test_a_queue_opens_at_its_first_claim(url):
    queue = Queue(QUEUE, url)
    try:
        assert await queue.claim() is None
    finally:
        await queue.close()


async def test_bad_arguments_are_refused_before_anything_is_opened(url):
    queue = Queue(QUEUE, url)
    try:
        for options in ({"timeout": -1}, {"timeout": "5"}, {"lease": 0}, {"lease": True}, {"worker_id": ""}):
            with pytest.raises(InvalidOption) as refusal:
                await queue.claim(**options)
            assert refusal.value.field in options
        with pytest.raises((InvalidOption, NotSupported)):
            await queue.claim(native=object())
        assert not queue.connection.is_open
    finally:
        await queue.close()


async def test_a_claim_goes_on_waiting_when_its_connections_are_cut(remote, until_waiting):
    async with Proxy(port_of(remote)) as proxy, Queue(QUEUE, proxy.through(remote)) as queue:
        claiming = asyncio.create_task(queue.claim(timeout=None))
        await until_waiting(queue)
        proxy.cut()
        async with Queue(QUEUE, remote) as direct:
            added = await direct.add(1)
        job = await asyncio.wait_for(claiming, 60)
        assert job.id == added.id
        await job.complete()


async def test_a_store_that_is_away_is_an_error_and_the_job_can_be_settled_later(remote):
    async with Queue(QUEUE, remote) as direct:
        added = await direct.add_many([NewJob(1), NewJob(2)])
        async with Proxy(port_of(remote)) as proxy:
            queue = await Queue(QUEUE, impatient(proxy.through(remote))).open()
            first, second = await queue.claim(lease=120), await queue.claim(lease=120)
        calls = first.complete(), second.extend(), queue.claim(lease=120)
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(error, StoreUnavailable) for error in errors] == [True] * 3, errors
        async with Proxy(port_of(remote), proxy.port):
            await first.complete()
            await second.complete()
            await queue.close()
        assert [await state_of(direct, job) for job in added] == [State.COMPLETED] * 2


def impatient(url):
    """The URL with a time for finding a server that is shorter than the fifteen seconds of Monque."""
    return f"{url}&serverSelectionTimeoutMS=500" if url.startswith("monque") else url


def port_of(url):
    return urlsplit(url.partition("+")[2]).port
