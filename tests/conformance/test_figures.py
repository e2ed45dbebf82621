"""Figures of many queues at once, as the dashboard reads them: cheap, and right as far as they go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobwire import Feature, NewJob, Queue, State
from jobwire.boundary import QueueFigures, Reading, Turnover
from jobwire.figures import figures_of


@pytest.fixture
def read(connection):
    async def read(*names: str, most: int = 1000, since: datetime | None = None) -> Reading:
        await connection.reach()
        return await connection.backend.queue_list.figures(names, most, since)

    return read


@pytest.fixture
async def lived_in(connection, queue, work, consume, finished):
    """Two queues with jobs in several states, one of them paused."""

    async def handler(job):
        if job.data == "bad":
            raise RuntimeError("bad")

    ended = await queue.add_many([NewJob("good"), NewJob("good"), NewJob("bad")])
    async with work(handler):
        for job in ended:
            await finished(queue, job.id)
    await queue.add("held")
    await consume().settle([], claim=1)
    await queue.add_many([NewJob("waits"), NewJob("waits"), NewJob("later", delay=3600)])
    parcels = Queue("parcels", connection)
    await parcels.add_many([NewJob(1), NewJob(2, delay=3600)])
    await parcels.admin.pause()
    return queue.name, parcels.name


def shown(figures: QueueFigures) -> tuple[str, dict[State, int], bool | None]:
    return figures.name, {state: jobs for state, jobs in figures.counts.items() if jobs}, figures.paused


async def test_they_are_those_that_exact_counting_finds(connection, read, lived_in):
    exact = await figures_of(connection, lived_in)
    found = await read(*lived_in)
    assert [shown(one) for one in found.queues] == [shown(one) for one in exact]
    assert {one.more for one in found.queues} == {frozenset()}
    assert {frozenset(one.counts) for one in found.queues} == {frozenset(one.counts) for one in exact}
    for figures in found.queues:
        assert figures.oldest is not None
        assert timedelta(0) <= datetime.now(UTC) - figures.oldest < timedelta(minutes=5)


async def test_a_queue_that_does_not_exist_has_no_jobs_and_is_not_made(connection, read, lived_in):
    found = await read("parcels", "nowhere")
    assert shown(found.queues[1])[1] == {}
    assert found.queues[1].oldest is None
    assert "nowhere" not in await connection.queues()


async def test_counting_stops_at_a_limit_and_that_is_marked(read, queue):
    await queue.add_many([NewJob(number) for number in range(5)])
    [limited] = (await read(queue.name, most=3)).queues
    [whole] = (await read(queue.name, most=5)).queues
    counted = (limited.counts[State.WAITING], State.WAITING in limited.more)
    assert counted in {(5, False), (3, True)}
    assert (whole.counts[State.WAITING], State.WAITING in whole.more) == (5, False)


async def test_a_queue_that_is_not_counted_whole_has_a_turnover(read, queue, work, finished):
    async def handler(job):
        if job.data == "bad":
            raise RuntimeError("bad")

    await queue.add("before", delay=3600)
    first = await read(queue.name)
    jobs = await queue.add_many([NewJob("good"), NewJob("good"), NewJob("bad")])
    async with work(handler):
        for job in jobs:
            await finished(queue, job.id)
    second = await read(queue.name, since=first.at)
    third = await read(queue.name, since=second.at)
    turnovers = [reading.queues[0].turnover for reading in (first, second, third)]
    none = Turnover(0, 0, 0)
    assert turnovers == ([None] * 3 if first.at is None else [none, Turnover(3, 2, 1), none])


async def test_a_search_in_steps_finds_all_queues(connection, read, lived_in):
    found: set[str] = set()
    cursor = None
    while True:
        names, cursor = await connection.backend.queue_list.search(cursor)
        found.update(names)
        if cursor is None:
            break
    assert sorted(found) == sorted(lived_in)


async def test_workers_of_many_queues_are_counted(connection, queue, work, eventually, needs):
    with needs(queue, Feature.WORKERS):
        await queue.admin.workers()

        async def each_has_its_own() -> bool:
            found = await connection.backend.workers.counts(["letters", "parcels", "nowhere"])
            return found == {"letters": 1, "parcels": 1, "nowhere": 0}

        async with work(lambda job: None, name="anna"), work(lambda job: None, queue="parcels", name="bert"):
            await eventually(each_has_its_own)
