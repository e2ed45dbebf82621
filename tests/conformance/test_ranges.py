"""Windows of a list: any number of jobs skipped, any number shown, in either order; and pages in the opposite order."""

from __future__ import annotations

import pytest

from jobwire.boundary import Completed, Failed
from jobwire.checks import LARGEST
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.options import NewJob

JOBS = 5


async def _waiting(queue, consume):
    """Some with a priority, where there are priorities: BullMQ keeps them apart from the others."""
    urgent = {"priority": 1} if queue.capabilities.priority else {}
    await queue.add_many([NewJob(n, **(urgent if n % 2 else {})) for n in range(JOBS)])


async def _delayed(queue, consume):
    # Two come due at the same moment.
    await queue.add_many([NewJob(n, delay=3600 - 60 * (n // 2)) for n in range(JOBS)])


async def _active(queue, consume):
    await queue.add_many([NewJob(n) for n in range(JOBS)])
    consumer = consume()
    for count in (2, JOBS - 2):
        await consumer.settle([], claim=count)


async def _completed(queue, consume):
    await _finish(queue, consume, lambda claim: Completed(claim, b"1"))


async def _failed(queue, consume):
    await _finish(queue, consume, lambda claim: Failed(claim, "bad", final=True))


async def _finish(queue, consume, outcome):
    """In two batches: the jobs of one may have finished at the same moment."""
    await queue.add_many([NewJob(n) for n in range(JOBS)])
    consumer = consume()
    for count in (2, JOBS - 2):
        claims = (await consumer.settle([], claim=count)).claims
        assert len(claims) == count
        await consumer.settle([outcome(claim) for claim in claims], claim=0)


MAKE = {
    State.WAITING: _waiting,
    State.DELAYED: _delayed,
    State.ACTIVE: _active,
    State.COMPLETED: _completed,
    State.FAILED: _failed,
}


async def ids(queue, state, **window):
    return [job.id for job in await queue.jobs(state, **window)]


async def pages(queue, state, limit, cursor=None, *, reverse=True):
    """The ids of all pages up to the last one."""
    found = []
    while True:
        page = await queue.jobs(state, limit=limit, cursor=cursor, reverse=reverse)
        assert len(page) <= limit
        found += [job.id for job in page]
        if page.cursor is None:
            return found
        cursor = page.cursor


@pytest.mark.parametrize("state", MAKE)
async def test_every_window_is_a_slice_of_the_whole_list(queue, consume, state):
    await MAKE[state](queue, consume)
    whole = await ids(queue, state)
    assert len(set(whole)) == JOBS
    for reverse, expected in ((False, whole), (True, whole[::-1])):
        for skip in range(JOBS + 2):
            for limit in (1, 2, JOBS, 100):
                shown = await ids(queue, state, skip=skip, limit=limit, reverse=reverse)
                assert (skip, limit, shown) == (skip, limit, expected[skip : skip + limit])


@pytest.mark.parametrize("state", MAKE)
async def test_pages_in_reverse_show_every_job_once(queue, consume, state):
    await MAKE[state](queue, consume)
    whole = await ids(queue, state)
    for limit in (1, 2, JOBS, 100):
        assert await pages(queue, state, limit) == whole[::-1]


@pytest.mark.parametrize("state", MAKE)
async def test_a_page_after_skipped_jobs_is_followed_by_the_rest(queue, consume, state):
    await MAKE[state](queue, consume)
    whole = await ids(queue, state)
    for reverse, expected in ((False, whole), (True, whole[::-1])):
        page = await queue.jobs(state, skip=1, limit=2, reverse=reverse)
        assert [job.id for job in page] == expected[1:3]
        assert await pages(queue, state, 1, page.cursor, reverse=reverse) == expected[3:]


@pytest.mark.parametrize("state", MAKE)
async def test_a_cursor_can_be_read_in_the_other_direction(queue, consume, state):
    await MAKE[state](queue, consume)
    whole = await ids(queue, state)
    forward = await queue.jobs(state, limit=3)
    assert await ids(queue, state, cursor=forward.cursor, reverse=True) == whole[1::-1]
    backward = await queue.jobs(state, limit=3, reverse=True)
    assert await ids(queue, state, cursor=backward.cursor) == whole[-2:]


async def test_a_job_that_leaves_between_two_pages_in_reverse_hides_no_other(queue):
    added = [job.id for job in await queue.add_many([NewJob(n) for n in range(8)])]
    first = await queue.jobs(limit=3, reverse=True)
    await queue.admin.remove(first[-1].id)
    await queue.add("new")
    rest = await pages(queue, State.WAITING, 3, first.cursor)
    assert [job.id for job in first] == added[:4:-1]
    assert [job_id for job_id in rest if job_id in added[:5]] == added[4::-1]


async def test_a_window_of_nothing_is_an_empty_page(queue):
    for window in ({"skip": 3}, {"reverse": True}, {"skip": LARGEST, "reverse": True}):
        page = await queue.jobs(**window)
        assert (list(page), page.cursor) == ([], None)
    await queue.add(1)
    assert await ids(queue, State.WAITING, skip=LARGEST) == []


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *(("skip", bad) for bad in (-1, 1.0, True, "1", None, LARGEST + 1)),
        *(("reverse", bad) for bad in (1, None, "yes")),
    ],
)
async def test_a_window_that_is_none_is_refused(queue, field, bad):
    with pytest.raises(InvalidOption) as refusal:
        await queue.jobs(**{field: bad})
    assert (refusal.value.field, refusal.value.value) == (field, bad)


async def test_skip_is_refused_together_with_a_cursor(queue):
    await queue.add_many([NewJob(n) for n in range(3)])
    page = await queue.jobs(limit=1)
    with pytest.raises(InvalidOption, match=r"skip: .*cursor"):
        await queue.jobs(cursor=page.cursor, skip=1)
