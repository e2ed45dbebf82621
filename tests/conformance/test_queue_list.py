"""The queues of a store, and actions on many jobs of one."""

from __future__ import annotations

import pytest

from jobwire import Acted, Feature, InvalidOption, Queue, State, sync


async def test_queues_are_listed_by_name(connection, needs):
    queues = [Queue(name, connection) for name in ("letters", "parcels", "a.b-c_d")]
    with needs(queues[0], Feature.QUEUES):
        assert list(await connection.queues()) == []
        for queue in reversed(queues):
            await queue.add(1)
        assert list(await connection.queues()) == sorted(queue.name for queue in queues)


async def test_a_name_is_known_once_it_has_a_job(connection, queue):
    assert not await connection.has_queue("parcels")
    await Queue("parcels", connection).add(1)
    assert await connection.has_queue("parcels")
    assert not await connection.has_queue("parcel")


async def test_asking_for_a_queue_does_not_make_it(connection):
    await connection.has_queue("parcels")
    assert "parcels" not in await connection.queues()


async def test_a_queue_with_only_a_schedule_or_a_pause_is_known(connection):
    await Queue("nightly", connection).schedule("report", cron="0 3 * * *")
    await Queue("held", connection).admin.pause()
    assert {"nightly", "held"} <= set(await connection.queues())
    assert await connection.has_queue("nightly")
    assert await connection.has_queue("held")


async def test_a_dropped_queue_is_not_known_any_more(connection, consume):
    queue = Queue("parcels", connection)
    await queue.add(1)
    await queue.add(2)
    await consume(queue="parcels").settle([], claim=1)
    await connection.drop_queue("parcels")
    await connection.drop_queue("parcels")
    assert "parcels" not in await connection.queues()
    assert not await connection.has_queue("parcels")


async def test_an_empty_name_is_refused(connection):
    with pytest.raises(InvalidOption, match="name"):
        await connection.has_queue("")


def test_blocking_code_lists_queues(url):
    with sync.connect(url) as connection:
        sync.Queue("parcels", connection).add(1)
        assert connection.has_queue("parcels")
        assert list(connection.queues()) == ["parcels"]


async def test_many_jobs_are_removed_and_each_gets_its_answer(queue, id_for):
    jobs = [await queue.add(number) for number in range(3)]
    missing = id_for(queue, "missing")
    ids = [jobs[0].id, missing, jobs[2].id]
    assert list(await queue.admin.remove_many(ids)) == [Acted.DONE, Acted.NOT_FOUND, Acted.DONE]
    assert [job.id for job in await queue.jobs()] == [jobs[1].id]


async def test_many_jobs_are_promoted(queue):
    late = [await queue.add(number, delay=600) for number in range(2)]
    ready = await queue.add(2)
    acted = await queue.admin.promote_many([job.id for job in (*late, ready)])
    assert list(acted) == [Acted.DONE, Acted.DONE, Acted.WRONG_STATE]
    assert (await queue.counts())[State.WAITING] == 3


async def test_many_jobs_are_retried(queue, work, finished):
    async def fail(job):
        raise ValueError("no")

    jobs = [await queue.add(number) for number in range(2)]
    async with work(fail):
        for job in jobs:
            await finished(queue, job.id)
    assert list(await queue.admin.retry_many(job.id for job in jobs)) == [Acted.DONE, Acted.DONE]
    assert (await queue.counts())[State.WAITING] == 2


async def test_many_jobs_are_cancelled(queue, needs):
    jobs = [await queue.add(number) for number in range(2)]
    with needs(queue, Feature.CANCEL):
        assert list(await queue.admin.cancel_many([job.id for job in jobs])) == [Acted.DONE, Acted.DONE]
        assert (await queue.counts())[State.CANCELLED] == 2


async def test_one_id_in_the_place_of_many_is_refused(queue):
    with pytest.raises(InvalidOption, match="not one value"):
        await queue.admin.remove_many("17")
