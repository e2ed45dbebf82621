"""A worker that works until nothing is left, and the context that its run is in."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from jobwire import Queue, Worker
from jobwire.errors import WaitTimeout, WrongState
from jobwire.model import State
from jobwire.options import NewJob

from .conftest import with_attempts


async def echo(job):
    return job.data


@pytest.mark.parametrize("concurrency", [1, 20])
async def test_it_settles_every_ready_job_and_returns_their_number(queue, work, concurrency):
    await queue.add_many([NewJob(n) for n in range(30)])
    worker = work(echo, concurrency=concurrency)
    assert await asyncio.wait_for(worker.run_until_idle(), 60) == 30
    assert (await queue.counts())[State.COMPLETED] == 30
    assert worker.busy == 0


async def test_it_returns_at_once_if_there_is_nothing_and_may_be_called_again(queue, work):
    worker = work(echo)
    assert await asyncio.wait_for(worker.run_until_idle(), 60) == 0
    await queue.add(1)
    assert await asyncio.wait_for(worker.run_until_idle(), 60) == 1
    assert worker.stats.completed == 1


async def test_it_does_not_wait_for_a_job_that_is_due_later(queue, work):
    await queue.add("now")
    later = await queue.add("later", delay=600)
    assert await asyncio.wait_for(work(echo).run_until_idle(), 60) == 1
    assert (await queue.get(later.id)).state is State.DELAYED


@with_attempts(3)
async def test_it_runs_next_attempts_that_are_due_at_once(queue, work, tries):
    ran = []

    async def fails(job):
        ran.append(job.id)
        raise ValueError("no")

    added = await queue.add(1, **tries.job)
    assert await asyncio.wait_for(work(fails, concurrency=2, **tries.worker).run_until_idle(), 60) == 3
    assert ran == [added.id] * 3
    assert (await queue.get(added.id)).state is State.FAILED


async def test_it_runs_jobs_that_handlers_add_to_other_queues_of_the_worker(queue, connection):
    async with Queue("parcels", connection) as parcels:

        async def send(job):
            if job.data:
                await parcels.add(job.data - 1)

        async def answer(job):
            if job.data:
                await queue.add(job.data - 1)

        await queue.add(9)
        worker = Worker({"letters": send, "parcels": answer}, url=connection, concurrency=3)
        assert await asyncio.wait_for(worker.run_until_idle(), 60) == 10
        assert (worker.stats_of("letters").completed, worker.stats_of("parcels").completed) == (5, 5)


async def test_it_stops_at_its_timeout_and_says_so(queue, work, eventually):
    started = asyncio.Event()

    async def stuck(job):
        started.set()
        await asyncio.Event().wait()

    added = await queue.add(1)
    worker = work(stuck, shutdown_timeout=0.1)
    with pytest.raises(WaitTimeout, match="1 job settled"):
        await worker.run_until_idle(timeout=1)
    assert started.is_set()
    assert (await queue.get(added.id)).state is State.WAITING


async def test_a_worker_that_is_stopped_ends_it(queue, work):
    await queue.add_many([NewJob(n) for n in range(3)])

    async def stops(job):
        stopping.append(asyncio.create_task(worker.stop()))

    stopping = []
    worker = work(stops)
    assert await asyncio.wait_for(worker.run_until_idle(), 60) == 1
    await stopping[0]
    assert not worker.claiming


async def test_a_worker_runs_once_at_a_time(queue, work):
    async with work(echo) as worker:
        await asyncio.sleep(0)
        with pytest.raises(WrongState):
            await worker.run_until_idle()


# --- the lifespan ---------------------------------------------------------------------------------------------------


class Office:
    """A lifespan, and what happened in which order."""

    def __init__(self):
        self.seen = []

    @contextlib.asynccontextmanager
    async def open(self):
        self.seen.append("opened")
        try:
            yield
        finally:
            self.seen.append("closed")


async def test_the_lifespan_is_around_all_jobs(queue, work):
    office = Office()

    async def handler(job):
        office.seen.append(job.data)

    class Settled:
        def started(self, claim): ...

        def settled(self, outcome, verdict):
            office.seen.append(verdict.value)

    await queue.add("a job")
    assert await work(handler, lifespan=office.open, observers=[Settled()]).run_until_idle() == 1
    assert office.seen == ["opened", "a job", "completed", "closed"]


async def test_a_lifespan_that_fails_ends_the_run_before_anything_is_claimed(queue, work):
    @contextlib.asynccontextmanager
    async def broken():
        raise ValueError("no such database")
        yield

    added = await queue.add(1)
    worker = work(echo, lifespan=broken)
    with pytest.raises(ValueError, match="no such database"):
        await worker.run()
    assert (await queue.get(added.id)).state is State.WAITING
    assert worker.stats.claimed == 0


async def test_the_lifespan_is_left_when_the_worker_fails(queue, work, monkeypatch):
    office = Office()
    worker = work(echo, lifespan=office.open)

    async def fails(self):
        raise ValueError("a fault")

    monkeypatch.setattr("jobwire.worker.engines.LeaseKeeper.watch", fails)
    with pytest.raises(ValueError, match="a fault"):
        await worker.run()
    assert office.seen == ["opened", "closed"]
