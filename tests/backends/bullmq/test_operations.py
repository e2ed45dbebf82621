"""What an operator asks of a queue beside Node: counts per priority, retries before a moment, default options."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from awaiting import eventually
from jobwire import Backoff, InvalidOption, Keep, NewJob, Queue, State, Worker
from jobwire.embedded import Server

from .peer import node


@pytest.fixture
def url(jobwire_valkey: Server, prefix: str) -> str:
    return f"bullmq+{jobwire_valkey.url}?prefix={prefix}"


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    async with Queue("q", url) as opened:
        yield opened


async def test_counts_per_priority_are_those_of_node(queue: Queue, jobwire_valkey: Server, prefix: str) -> None:
    await queue.add_many([NewJob(n, priority=n % 4 or None) for n in range(10)])
    asked = [0, 1, 2, 3, 7]
    [theirs] = await node(
        jobwire_valkey.url, [prefix], f"say(await queueOf(prefixes[0]).getCountsPerPriority({asked}));"
    )
    ours = await queue.admin.counts_by_priority(asked)
    assert ours == {int(priority): count for priority, count in theirs.items()} == {0: 3, 1: 3, 2: 2, 3: 2, 7: 0}
    await queue.admin.pause()
    assert (await queue.admin.counts_by_priority([0]))[0] == 3


async def test_only_jobs_that_failed_before_the_moment_are_retried(queue: Queue, url: str) -> None:
    async def fail(job: object) -> None:
        raise ValueError("no")

    async def failed(number: int) -> bool:
        return (await queue.counts())[State.FAILED] == number

    async with Worker("q", fail, url):
        early = await queue.add(1)
        await eventually(lambda: failed(1))
        await asyncio.sleep(0.05)
        job = await queue.get(early.id)
        assert job is not None
        assert job.finished_at is not None
        moment = job.finished_at + timedelta(milliseconds=20)
        await queue.add(2)
        await eventually(lambda: failed(2))
    assert await queue.admin.retry_all(before=moment - timedelta(hours=1)) == 0
    assert await queue.admin.retry_all(before=moment) == 1
    assert [one.id for one in await queue.jobs(State.WAITING)] == [early.id]
    with pytest.raises(InvalidOption, match="before"):
        await queue.admin.retry_all(before=datetime(2020, 1, 1))  # noqa: DTZ001 that it is refused is the point


async def test_jobs_take_what_they_do_not_say_from_their_queue(url: str) -> None:
    defaults = {"attempts": 3, "priority": 5, "delay": 60, "keep_completed": Keep(count=9), "extra": {"keepLogs": 4}}
    async with Queue("q", url, defaults=defaults) as queue:  # type: ignore[arg-type]
        plain = await queue.get((await queue.add(1)).id)
        own = await queue.get(
            (await queue.add(1, attempts=1, priority=0, run_at=datetime.now(UTC) - timedelta(1), lifo=True)).id
        )
        [many] = await queue.add_many([NewJob(1, backoff=Backoff.fixed(1), extra={"keepLogs": 7})])
        bulk = await queue.get(many.id)
        await queue.schedule("s", every=60)
    assert plain is not None
    assert own is not None
    assert bulk is not None
    assert (plain.attempts, plain.priority, plain.state) == (3, 5, State.DELAYED)
    assert (own.attempts, own.priority, own.state) == (1, 0, State.WAITING)
    assert (bulk.attempts, bulk.state) == (3, State.DELAYED)
    assert b'"kl":7' in bulk.raw["opts"]
    assert b'"kl":4' in plain.raw["opts"]


@pytest.mark.parametrize("defaults", [{"id": "x"}, {"attempts": 0}, {"delay": 1, "run_at": datetime.now(UTC)}])
def test_defaults_that_no_job_could_have_are_refused(url: str, defaults: dict[str, object]) -> None:
    with pytest.raises(InvalidOption):
        Queue("q", url, defaults=defaults)  # type: ignore[arg-type]
