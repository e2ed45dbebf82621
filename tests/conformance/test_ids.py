"""Ids of the caller's own, and what a second job with the same id comes to."""

from __future__ import annotations

import asyncio

import pytest

from jobwire import AddStatus
from jobwire.errors import InvalidOption
from jobwire.options import NewJob


async def test_a_job_keeps_the_id_it_was_given(queue, id_for):
    order = id_for(queue, "order-17")
    added = await queue.add(1, id=order)
    assert added.id == order
    assert added.add_status is AddStatus.ADDED
    assert (await queue.get(order)).data == 1


async def test_a_second_job_with_the_same_id_is_refused_and_the_first_stays(queue, id_for):
    order = id_for(queue, "order-17")
    await queue.add("first", id=order)
    second = await queue.add("second", id=order)
    assert second.id == order
    assert second.add_status is AddStatus.DUPLICATE
    assert (await queue.get(order)).data == "first"
    assert sum((await queue.counts()).values()) == 1


async def test_a_duplicate_inside_one_batch_is_refused_alone(queue, id_for):
    added = await queue.add_many(
        [
            NewJob(1, id=id_for(queue, "a-1")),
            NewJob(2, id=id_for(queue, "b-1")),
            NewJob(3, id=id_for(queue, "a-1")),
            NewJob(4),
        ]
    )
    assert [job.add_status.value for job in added] == ["added", "added", "duplicate", "added"]
    assert sum((await queue.counts()).values()) == 3


async def test_of_many_concurrent_adds_with_one_id_exactly_one_wins(queue, id_for):
    order = id_for(queue, "order-17")
    added = await asyncio.gather(*(queue.add(n, id=order) for n in range(50)))
    assert [job.add_status for job in added].count(AddStatus.ADDED) == 1
    assert sum((await queue.counts()).values()) == 1


async def test_an_id_is_taken_while_the_finished_job_is_kept(queue, work, finished, id_for):
    order = id_for(queue, "order-17")
    await queue.add(1, id=order)
    async with work(lambda job: None):
        await finished(queue, order)
    assert (await queue.add(2, id=order)).add_status is AddStatus.DUPLICATE


async def test_an_id_is_free_again_once_the_job_is_removed(queue, id_for):
    order = id_for(queue, "order-17")
    await queue.add(1, id=order)
    await queue.admin.remove(order)
    assert (await queue.add(2, id=order)).add_status is AddStatus.ADDED
    assert (await queue.get(order)).data == 2


@pytest.mark.parametrize("given", ["", "a\ud800b", 17], ids=["empty", "surrogate", "number"])
async def test_an_id_that_no_protocol_takes_is_refused_before_anything_is_written(queue, given):
    with pytest.raises(InvalidOption) as refusal:
        await queue.add(1, id=given)
    assert refusal.value.field == "id"
    assert sum((await queue.counts()).values()) == 0


async def test_an_id_of_another_shape_is_refused_with_the_shape(queue):
    shapes = {"uuid": "UUID", "objectid": "ObjectId"}
    if queue.capabilities.ids == "any":
        assert (await queue.add(1, id="order-17")).id == "order-17"
        return
    with pytest.raises(InvalidOption, match=shapes[queue.capabilities.ids]) as refusal:
        await queue.add(1, id="order-17")
    assert refusal.value.field == "id"
    assert sum((await queue.counts()).values()) == 0


async def test_a_schedule_gives_its_jobs_ids_of_their_own(queue, id_for):
    with pytest.raises(InvalidOption, match="schedule"):
        await queue.schedule("nightly", cron="0 3 * * *", id=id_for(queue, "order-17"))
