"""What is added is what is read, in the order in which it was added."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, NotSupported
from jobwire.model import AddStatus, State
from jobwire.options import NewJob


async def test_a_job_reads_back_as_it_was_added(queue):
    before = datetime.now(UTC) - timedelta(seconds=1)
    added = await queue.add({"to": "a@example.com"})
    job = await queue.get(added.id)
    assert (job.id, job.queue, job.name) == (added.id, queue.name, queue.name)
    assert job.data == {"to": "a@example.com"}
    assert (job.state, job.attempts_made, job.result, job.error) == (State.WAITING, 0, None, None)
    assert job.native_state
    assert before <= job.created_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert job.started_at is None
    assert job.finished_at is None


@pytest.mark.parametrize(
    "options", [{}, {"delay": 3600}, {"priority": 7}, {"attempts": 4}, {"name": "welcome"}], ids=str
)
async def test_add_states_of_a_job_only_what_is_true(queue, options):
    """What the client can't know, as attempts where the store's own settings decide, is None."""
    can = queue.capabilities
    needed = {"priority": Feature.PRIORITIES, "attempts": Feature.ATTEMPTS, "name": Feature.JOB_NAMES}
    if any(not can.has(feature) for option, feature in needed.items() if option in options):
        with pytest.raises(NotSupported):
            await queue.add(1, **options)
        return
    one = await queue.add({"n": 1}, **options)
    [many] = await queue.add_many([NewJob({"n": 1}, **options)])
    for added in (one, many):
        read = await queue.get(added.id)
        for field in ("id", "queue", "name", "data", "state", "priority", "attempts_made", "result", "error", "worker"):
            assert (field, getattr(added, field)) == (field, getattr(read, field))
        assert added.attempts in (None, read.attempts)
        assert options.get("attempts") in (None, added.attempts)
        assert (added.add_status, read.add_status) == (AddStatus.ADDED, None)


async def test_a_job_without_data_carries_what_the_protocols_own_client_stores_for_it(queue):
    added = await queue.add()
    expected = json.loads(queue.capabilities.no_data)
    assert added.data == expected
    assert (await queue.get(added.id)).data == expected


async def test_a_job_whose_data_is_none_carries_null(queue):
    added = await queue.add(None)
    assert (await queue.get(added.id)).data is None


async def test_a_job_keeps_a_name_of_its_own(queue, needs):
    with needs(queue, Feature.JOB_NAMES):
        added = await queue.add(1, name="welcome")
        assert (await queue.get(added.id)).name == "welcome"


async def test_add_many_keeps_the_order_and_answers_one_job_each(queue):
    added = await queue.add_many([NewJob(n) for n in range(20)])
    assert [job.data for job in added] == list(range(20))
    assert len({job.id for job in added}) == 20
    assert [job.data for job in await queue.jobs(State.WAITING)] == list(range(20))


async def test_adding_nothing_is_no_error(queue):
    assert await queue.add_many([]) == []


async def test_one_bad_job_of_many_leaves_nothing_behind(queue):
    with pytest.raises(InvalidOption):
        await queue.add_many([NewJob(1), NewJob(float("nan")), NewJob(2)])
    assert sum((await queue.counts()).values()) == 0


async def test_concurrent_adds_each_get_their_own_job(queue):
    added = await asyncio.gather(*(queue.add(n) for n in range(200)))
    assert [job.data for job in added] == list(range(200))
    assert len({job.id for job in added}) == 200
    stored = [await queue.get(job.id) for job in added[::20]]
    assert [job.data for job in stored] == list(range(0, 200, 20))


async def test_changing_the_data_after_the_add_changes_no_job(queue):
    data = {"lines": ["first"]}
    added = await queue.add(data)
    data["lines"].append("second")
    assert (await queue.get(added.id)).data == {"lines": ["first"]}


async def test_two_readers_share_no_value(queue):
    added = await queue.add({"lines": []})
    (await queue.get(added.id)).data["lines"].append("scribble")
    assert (await queue.get(added.id)).data == {"lines": []}


async def test_an_unknown_id_reads_as_none(queue):
    assert await queue.get("no-such-job") is None
