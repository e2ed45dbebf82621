"""What an add reports when the store makes no new job."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from jobwire import AddStatus, InvalidOption, NewJob, Queue, State, Unique
from jobwire.backends.pgboss import Boss


async def test_a_time_slot_and_a_policy_throttle_and_a_key_is_a_duplicate(connection, unique):
    await Boss(connection).create_queue(unique, policy="short")
    async with Queue(unique, connection) as short:
        first = await short.add(1)
        second = await short.add(2)
        assert (second.id, second.add_status) == (first.id, AddStatus.THROTTLED)
        keyed = await short.add(3, unique=Unique("a"))
        again = await short.add(4, unique=Unique("a"))
        assert (again.id, again.add_status) == (keyed.id, AddStatus.DUPLICATE)
        assert keyed.add_status is AddStatus.ADDED
    async with Queue(f"{unique}_slots", connection) as slots:
        jobs = [await slots.add(n, extra={"singletonSeconds": 3600}) for n in range(2)]
        if jobs[1].add_status is AddStatus.ADDED:  # a new slot began between the two
            jobs = [jobs[1], await slots.add(2, extra={"singletonSeconds": 3600})]
        assert (jobs[1].id, jobs[1].add_status) == (jobs[0].id, AddStatus.THROTTLED)


async def test_a_job_without_a_key_fails_alone_among_those_added_at_the_same_time(connection, unique):
    await Boss(connection).create_queue(unique, policy="key_strict_fifo")
    async with Queue(unique, connection) as queue:
        keys = ["a", "b", None, "c"]
        adds = [queue.add(n, unique=Unique(key) if key else None) for n, key in enumerate(keys)]
        answers = await asyncio.gather(*adds, return_exceptions=True)
        assert [isinstance(answer, InvalidOption) for answer in answers] == [False, False, True, False], answers
        assert (await queue.counts())[State.WAITING] == 3
        with pytest.raises(InvalidOption, match="takes no job without a key"):
            await queue.add_many([NewJob(5, unique=Unique("d")), NewJob(6)])
        assert (await queue.counts())[State.WAITING] == 3


async def test_a_throttled_send_takes_seconds_and_timedeltas(boss, queue):
    first = await boss.throttled(queue.name, 1, timedelta(days=3650), key="k")
    second = await boss.throttled(queue.name, 2, 3650 * 86400, key="k")
    assert (second.id, second.status) == (first.id, AddStatus.THROTTLED)
    for given in (0, 1.5, timedelta(milliseconds=1500), "a minute"):
        with pytest.raises(InvalidOption, match="seconds"):
            await boss.throttled(queue.name, 3, given)


async def test_an_upsert_tells_a_new_job_from_one_that_was_changed(boss, queue):
    added = await boss.upsert(queue.name, "k", {"n": 1})
    changed = await boss.upsert(queue.name, "k", {"n": 2})
    assert (added.status, added.updated) == (AddStatus.ADDED, False)
    assert (changed.id, changed.status, changed.updated) == (added.id, AddStatus.DUPLICATE, True)
    assert (await queue.get(added.id)).data == {"n": 2}
