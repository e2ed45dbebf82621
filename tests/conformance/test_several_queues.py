"""One worker of two queues: both are worked, neither starves, and the worker's slots hold for both together."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from jobwire import Queue, QueueHandler, Worker
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.options import NewJob

LETTERS, PARCELS = "letters", "parcels"


@pytest.fixture
async def parcels(connection):
    async with Queue(PARCELS, connection) as opened:
        yield opened


@pytest.fixture
def both(connection):
    """Make a worker of both queues: `async with both(handler, concurrency=5) as worker:`."""

    def make(letters, parcels=None, **options):
        return Worker({LETTERS: letters, PARCELS: letters if parcels is None else parcels}, url=connection, **options)

    return make


class Load:
    """A handler whose jobs run until they may end, and how many of them ran at once: in all and by queue."""

    def __init__(self):
        self.running, self.most, self.ran = Counter(), Counter(), Counter()
        self.go_on = asyncio.Event()

    async def __call__(self, job):
        self.running[job.queue] += 1
        for name, number in ((job.queue, self.running[job.queue]), ("all", self.running.total())):
            self.most[name] = max(self.most[name], number)
        try:
            await self.go_on.wait()
            await asyncio.sleep(0)
        finally:
            self.running[job.queue] -= 1
        self.ran[job.queue] += 1


async def test_both_queues_are_worked_by_their_own_handlers(queue, parcels, both, finished):
    async def stamp(job):
        return f"stamped {job.data}"

    def weigh(job):
        return f"weighed {job.data}"

    async with both(stamp, QueueHandler(weigh)) as worker:
        letter, parcel = await queue.add("a"), await parcels.add("b")
        assert (await finished(queue, letter.id)).result == "stamped a"
        assert (await finished(parcels, parcel.id)).result == "weighed b"
        assert worker.queues == (LETTERS, PARCELS)
    assert (worker.stats.completed, worker.stats_of(LETTERS).completed, worker.stats_of(PARCELS).completed) == (2, 1, 1)


async def test_no_more_jobs_run_at_once_than_the_worker_may_run(queue, parcels, both, eventually):
    load = Load()
    for one in (queue, parcels):
        await one.add_many([NewJob(n) for n in range(30)])
    async with both(load, concurrency=5) as worker:
        await eventually(lambda: load.running.total() == 5)
        load.go_on.set()
        await eventually(lambda: worker.stats.completed == 60)
    assert load.most["all"] == 5
    assert load.ran == {LETTERS: 30, PARCELS: 30}


async def test_a_queue_with_a_limit_of_its_own_leaves_the_other_slots_to_the_others(queue, parcels, both, eventually):
    load = Load()
    for one in (queue, parcels):
        await one.add_many([NewJob(n) for n in range(20)])
    async with both(load, QueueHandler(load, concurrency=2), concurrency=6) as worker:
        await eventually(lambda: load.running == {LETTERS: 4, PARCELS: 2})
        load.go_on.set()
        await eventually(lambda: worker.stats.completed == 40)
    assert (load.most[PARCELS], load.most["all"]) == (2, 6)


async def test_two_queues_full_of_jobs_get_an_equal_part_of_the_slots(queue, parcels, both, eventually):
    load = Load()
    await queue.add_many([NewJob(n) for n in range(30)])
    async with both(load, concurrency=4) as worker:
        await eventually(lambda: load.running == {LETTERS: 4})
        await parcels.add_many([NewJob(n) for n in range(30)])
        load.go_on.set()
        await eventually(lambda: load.ran[PARCELS] >= 10)
        done = dict(load.ran)
        await eventually(lambda: worker.stats.completed == 60)
    assert done[LETTERS] <= 4 + 3 * done[PARCELS], done


@pytest.mark.usefixtures("no_polling")
@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_single_job_is_not_kept_waiting_by_a_queue_that_is_never_empty(
    *, queue, parcels, both, finished, eventually, concurrency
):
    over = asyncio.Event()

    async def endless(job):
        if not over.is_set():
            await queue.add_many([NewJob(1)] if job.data else [])

    async def echo(job):
        return job.data

    await queue.add_many([NewJob(1) for _ in range(4)])
    async with both(endless, echo, concurrency=concurrency) as worker:
        await eventually(lambda: worker.stats_of(LETTERS).completed > 10)
        for n in range(5):
            added = await parcels.add(n)
            assert (await finished(parcels, added.id)).result == n
        over.set()
        await eventually(lambda: worker.busy == 0)


@pytest.mark.usefixtures("no_polling")
async def test_a_queue_is_worked_as_soon_as_another_frees_a_slot(queue, parcels, both, finished, eventually):
    load = Load()

    async def echo(job):
        return job.data

    await queue.add(1)
    async with both(load, echo, concurrency=1) as worker:
        await eventually(lambda: load.running[LETTERS] == 1)
        added = await parcels.add("waits")
        assert (await parcels.get(added.id)).state is State.WAITING
        load.go_on.set()
        assert (await finished(parcels, added.id)).result == "waits"
        assert worker.stats.released == 0


@pytest.mark.usefixtures("no_polling")
async def test_a_worker_without_a_free_slot_leaves_jobs_to_others(
    *, queue, parcels, both, connection, finished, eventually
):
    load = Load()

    async def echo(job):
        return job.data

    async with both(load, concurrency=1) as full, Worker(PARCELS, echo, connection, worker_id="other") as other:
        await eventually(lambda: full.stats_of(PARCELS).calls > 0 and other.stats.calls > 0)
        await queue.add(1)
        await eventually(lambda: load.running[LETTERS] == 1)
        for n in range(5):
            added = await parcels.add(n)
            assert (await finished(parcels, added.id)).result == n
        await eventually(lambda: other.stats.completed == 5)
        assert full.stats_of(PARCELS).claimed == 0
        load.go_on.set()
        await eventually(lambda: full.stats.completed == 1)
        added = await parcels.add("last")
        assert (await finished(parcels, added.id)).state is State.COMPLETED


async def test_stopping_releases_the_jobs_of_both_queues(queue, parcels, both, eventually):
    load = Load()
    letter, parcel = await queue.add(1), await parcels.add(2)
    async with both(load, concurrency=2, shutdown_timeout=0.1) as worker:
        await eventually(lambda: load.running.total() == 2)
        await asyncio.wait_for(worker.stop(), 20)
    for one, added in ((queue, letter), (parcels, parcel)):
        job = await one.get(added.id)
        assert (job.state, job.attempts_made) == (State.WAITING, 0)
    assert worker.stats.released == 2


async def test_stopping_waits_for_the_jobs_of_both_queues(queue, parcels, both, eventually):
    load = Load()
    await queue.add(1)
    await parcels.add(2)
    async with both(load, concurrency=2) as worker:
        await eventually(lambda: load.running.total() == 2)
        stopping = asyncio.create_task(worker.stop())
        await asyncio.sleep(0)
        load.go_on.set()
        await asyncio.wait_for(stopping, 20)
    assert worker.stats.completed == 2


@pytest.mark.usefixtures("no_polling")
async def test_a_worker_pauses_all_of_its_queues_or_one(queue, parcels, both, finished, eventually):
    async def echo(job):
        return job.data

    async with both(echo, concurrency=2) as worker:
        await eventually(lambda: all(worker.stats_of(name).calls for name in worker.queues))
        await worker.pause()
        letter, parcel = await queue.add("letter"), await parcels.add("parcel")
        assert (worker.paused, worker.stats.claimed) == (True, 0)
        worker.resume(queue=LETTERS)
        assert (await finished(queue, letter.id)).result == "letter"
        assert (worker.paused, worker.stats_of(PARCELS).claimed) == (False, 0)
        worker.resume()
        assert (await finished(parcels, parcel.id)).result == "parcel"
        await worker.pause(queue=LETTERS)
        letter, parcel = await queue.add("later"), await parcels.add("now")
        assert (await finished(parcels, parcel.id)).result == "now"
        assert (await queue.get(letter.id)).state is State.WAITING


async def test_a_lost_lease_stops_only_its_own_job(queue, parcels, both, eventually):
    load = Load()
    await queue.add(1)
    await parcels.add(2)
    async with both(load, concurrency=2, lease=1.5, recover_every=0.1) as worker:
        await eventually(lambda: load.running.total() == 2)
        await parcels.admin.obliterate(force=True)
        await eventually(lambda: worker.stats_of(PARCELS).lost == 1)
        await eventually(lambda: worker.stats_of(LETTERS).heartbeats > 0)
        assert load.running == {LETTERS: 1, PARCELS: 0}
        load.go_on.set()
        await eventually(lambda: worker.stats_of(LETTERS).completed == 1)
    assert worker.stats_of(LETTERS).lost == 0


async def test_a_job_is_cancelled_by_its_id_and_queue(queue, parcels, both, finished, eventually):
    load = Load()
    letter, parcel = await queue.add(1), await parcels.add(2)
    async with both(load, concurrency=2) as worker:
        await eventually(lambda: load.running.total() == 2)
        assert not worker.cancel("7" * 24, queue=LETTERS)
        assert worker.cancel(parcel.id, "not wanted", queue=PARCELS)
        assert (await finished(parcels, parcel.id)).state is State.FAILED
        assert load.running[LETTERS] == 1
        load.go_on.set()
        assert (await finished(queue, letter.id)).state is State.COMPLETED
        with pytest.raises(InvalidOption, match="letters, parcels"):
            worker.cancel(letter.id, queue="crates")
