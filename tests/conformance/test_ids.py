"""Ids of the caller's own, and what a second job with the same id comes to."""

from __future__ import annotations

import asyncio

from jobwire import AddStatus
from jobwire.boundary import Feature
from jobwire.options import NewJob


async def test_a_job_keeps_the_id_it_was_given(queue, needs):
    with needs(queue, Feature.CUSTOM_IDS):
        added = await queue.add(1, id="order-17")
        assert added.id == "order-17"
        assert added.add_status is AddStatus.ADDED
        assert (await queue.get("order-17")).data == 1


async def test_a_second_job_with_the_same_id_is_refused_and_the_first_stays(queue, needs):
    with needs(queue, Feature.CUSTOM_IDS):
        await queue.add("first", id="order-17")
        second = await queue.add("second", id="order-17")
        assert second.id == "order-17"
        assert second.add_status is AddStatus.DUPLICATE
        assert (await queue.get("order-17")).data == "first"
        assert sum((await queue.counts()).values()) == 1


async def test_a_duplicate_inside_one_batch_is_refused_alone(queue, needs):
    with needs(queue, Feature.CUSTOM_IDS):
        added = await queue.add_many([NewJob(1, id="a-1"), NewJob(2, id="b-1"), NewJob(3, id="a-1"), NewJob(4)])
        assert [job.add_status for job in added] == [
            AddStatus.ADDED,
            AddStatus.ADDED,
            AddStatus.DUPLICATE,
            AddStatus.ADDED,
        ]
        assert sum((await queue.counts()).values()) == 3


async def test_of_many_concurrent_adds_with_one_id_exactly_one_wins(queue, needs):
    with needs(queue, Feature.CUSTOM_IDS):
        added = await asyncio.gather(*(queue.add(n, id="order-17") for n in range(50)))
        assert [job.add_status for job in added].count(AddStatus.ADDED) == 1
        assert sum((await queue.counts()).values()) == 1


async def test_an_id_is_taken_while_the_finished_job_is_kept(queue, work, finished, needs):
    with needs(queue, Feature.CUSTOM_IDS):
        await queue.add(1, id="order-17")
        async with work(lambda job: None):
            await finished(queue, "order-17")
        assert (await queue.add(2, id="order-17")).add_status is AddStatus.DUPLICATE


async def test_an_id_is_free_again_once_the_job_is_removed(queue, needs):
    with needs(queue, Feature.CUSTOM_IDS):
        await queue.add(1, id="order-17")
        await queue.remove("order-17")
        assert (await queue.add(2, id="order-17")).add_status is AddStatus.ADDED
        assert (await queue.get("order-17")).data == 2
