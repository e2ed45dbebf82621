"""One job per key."""

from __future__ import annotations

import asyncio

from jobwire import AddStatus
from jobwire.boundary import Feature
from jobwire.model import State
from jobwire.options import Unique


async def test_a_second_job_of_the_same_key_is_refused_and_names_the_first(queue, needs):
    with needs(queue, Feature.UNIQUE):
        first = await queue.add("first", unique=Unique("report"))
        second = await queue.add("second", unique=Unique("report"))
        other = await queue.add("other", unique=Unique("invoice"))
        assert (first.add_status, other.add_status) == (AddStatus.ADDED, AddStatus.ADDED)
        assert second.add_status is AddStatus.DUPLICATE
        assert second.id == first.id
        assert (await queue.counts())[State.WAITING] == 2


async def test_of_many_concurrent_adds_with_one_key_exactly_one_wins(queue, needs):
    with needs(queue, Feature.UNIQUE):
        added = await asyncio.gather(*(queue.add(n, unique=Unique("report")) for n in range(50)))
        assert [job.add_status for job in added].count(AddStatus.ADDED) == 1
        assert len({job.id for job in added}) == 1


async def test_a_key_is_free_again_when_its_job_has_finished(queue, work, finished, needs):
    with needs(queue, Feature.UNIQUE):
        first = await queue.add(1, unique=Unique("report"))
        async with work(lambda job: None):
            await finished(queue, first.id)
        assert (await queue.add(2, unique=Unique("report"))).add_status is AddStatus.ADDED


async def test_a_key_stays_taken_while_its_job_runs(queue, consume, needs):
    with needs(queue, Feature.UNIQUE):
        await queue.add(1, unique=Unique("report"))
        await consume().settle([], claim=1)
        assert (await queue.add(2, unique=Unique("report"))).add_status is AddStatus.DUPLICATE


async def test_a_key_is_free_again_when_its_job_is_removed(queue, needs):
    with needs(queue, Feature.UNIQUE):
        first = await queue.add(1, unique=Unique("report"))
        await queue.admin.remove(first.id)
        assert (await queue.add(2, unique=Unique("report"))).add_status is AddStatus.ADDED


async def test_a_key_with_a_ttl_outlives_its_job_until_the_ttl_is_over(queue, work, finished, eventually, needs):
    with needs(queue, Feature.UNIQUE, Feature.UNIQUE_TTL):
        first = await queue.add(1, unique=Unique("report", ttl=0.6))
        async with work(lambda job: None):
            await finished(queue, first.id)
        assert (await queue.add(2, unique=Unique("report", ttl=0.6))).add_status is AddStatus.DUPLICATE

        async def admitted():
            return (await queue.add(3, unique=Unique("report", ttl=0.6))).add_status is AddStatus.ADDED

        await eventually(admitted)


async def test_a_refused_add_restarts_the_ttl_when_it_extends(queue, eventually, needs):
    with needs(queue, Feature.UNIQUE, Feature.UNIQUE_TTL, Feature.UNIQUE_EXTEND):
        key = Unique("report", ttl=0.5, extend=True)
        first = await queue.add(1, unique=key)
        loop = asyncio.get_running_loop()
        began = loop.time()

        async def refused_for_longer_than_the_ttl():
            again = await queue.add(2, unique=key)
            assert again.add_status is AddStatus.DUPLICATE
            assert again.id == first.id
            return loop.time() - began > 1.0

        await eventually(refused_for_longer_than_the_ttl)


async def test_a_newer_job_replaces_one_that_is_still_delayed(queue, needs):
    with needs(queue, Feature.UNIQUE, Feature.UNIQUE_REPLACE):
        key = Unique("report", replace=True)
        first = await queue.add("old", delay=3600, unique=key)
        second = await queue.add("new", delay=3600, unique=key)
        assert second.add_status is AddStatus.ADDED
        assert second.id != first.id
        assert await queue.get(first.id) is None
        assert [job.data for job in await queue.jobs(State.DELAYED)] == ["new"]


async def test_a_job_that_waits_already_is_not_replaced(queue, needs):
    with needs(queue, Feature.UNIQUE, Feature.UNIQUE_REPLACE):
        key = Unique("report", replace=True)
        first = await queue.add("old", unique=key)
        second = await queue.add("new", unique=key)
        assert second.add_status is AddStatus.DUPLICATE
        assert second.id == first.id
