"""Queues that stand still, on every protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import redis.asyncio as redis
from pymongo.collection import Collection

from awaiting import eventually
from jobwire import Feature, Keep, NewJob, Queue, Worker, connect
from jobwire.boundary import ConsumerSettings
from jobwire.doctor import Severity, check_clock

from .conftest import finding, look

LONG_AGO = datetime.now(UTC) - timedelta(hours=2)


@pytest.fixture
async def queue(url: str) -> AsyncIterator[Queue]:
    async with Queue("emails", url) as queue:
        yield queue


async def ignore(job: object) -> None: ...


async def test_waiting_jobs_without_a_worker_are_found(url: str, queue: Queue) -> None:
    await queue.add(1)
    lists_workers = queue.capabilities.has(Feature.WORKERS)
    found = await finding(url, "no-worker" if lists_workers else "waiting", waiting=0)
    assert found is not None
    assert (found.severity, found.queue) == (Severity.WARNING, "emails")
    assert found.evidence.startswith("1 waiting, and no worker" if lists_workers else "1 job waiting, the oldest for ")
    assert found.remedy == "jobwire worker MODULE:HANDLER --queue emails"
    async with Worker("emails", ignore, queue.connection):
        await eventually(lambda: _is_empty(queue))
        seen = await look(url, waiting=0)
    assert {"no-worker", "waiting"}.isdisjoint(one.code for one in seen.findings)


async def _is_empty(queue: Queue) -> bool:
    counts = await queue.counts()
    return not any(number for state, number in counts.items() if not state.finished)


async def test_a_backlog_beside_busy_workers_is_found(url: str, queue: Queue) -> None:
    await queue.add_many([NewJob(1), NewJob(2)])

    running, done = asyncio.Event(), asyncio.Event()

    async def handle(job: object) -> None:
        running.set()
        await done.wait()

    async with Worker("emails", handle, queue.connection, concurrency=1):
        await running.wait()
        found = await finding(url, "waiting", waiting=0)
        done.set()
        await eventually(lambda: _is_empty(queue))
    assert found is not None
    assert found.evidence.endswith("; 1 active")


async def test_a_paused_queue_is_a_note_only_after_long(url: str, queue: Queue) -> None:
    await queue.add(1)
    await queue.admin.pause()
    assert await finding(url, "paused") is None
    found = await finding(url, "paused", paused=0)
    assert found is not None
    assert (found.severity, found.remedy) == (Severity.NOTE, "jobwire resume emails")
    codes = [one.code for one in (await look(url, waiting=0)).findings]
    assert {"waiting", "no-worker"}.isdisjoint(codes)


async def test_active_jobs_of_a_dead_worker_are_found(url: str, queue: Queue) -> None:
    job = await queue.add(1)
    async with connect(url) as connection:
        settings = ConsumerSettings(queue="emails", worker_id="dies", lease=0.3)
        consumer = connection.backend.consumer(settings)
        assert len((await consumer.settle([], claim=1)).claims) == 1
        assert await finding(url, "stalled") is None

        async def stalled() -> Any:
            return await finding(url, "stalled")

        found = await eventually(stalled)
        await consumer.close()
    assert (found.severity, found.queue) == (Severity.WARNING, "emails")
    assert found.evidence == f"1 of 1 active jobs have an expired lease: {job.id}"
    assert found.remedy.startswith("start a worker of this queue")


async def test_finished_jobs_that_pile_up_are_found(url: str, queue: Queue) -> None:
    jobs = await queue.add_many([NewJob(1), NewJob(2)])
    async with Worker("emails", ignore, queue.connection):
        for job in jobs:
            await queue.wait(job.id, timeout=30)
    found = await finding(url, "finished-growth", finished=2)
    assert found is not None
    assert (found.severity, found.evidence) == (Severity.NOTE, "2 completed")
    assert found.remedy.startswith("jobwire clean emails --state completed --older-than 7d")
    found = await finding(url, "finished-growth", finished=0)
    assert found is not None
    assert found.severity is Severity.WARNING
    assert await finding(url, "finished-growth", finished=3) is None


async def test_clocks_that_differ_are_found(url: str, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await finding(url, "clock-offset") is None
    slow = SimpleNamespace(time=lambda: time.time() - 90)  # this machine's clock, set wrongly
    monkeypatch.setattr(check_clock, "time", slow)
    found = await finding(url, "clock-offset")
    assert found is not None
    assert found.severity is Severity.WARNING
    assert found.evidence.startswith(("the store's clock is 90.0 s ahead", "the store's clock is 89."))
    assert "NTP" in found.remedy


async def test_jobs_that_come_and_go_are_not_taken_for_trouble(url: str, queue: Queue) -> None:
    """Looking takes several reads, and between two of them jobs are claimed, completed and deleted."""
    keep = {"keep_completed": Keep.NONE} if queue.capabilities.has(Feature.KEEP) else {}
    await queue.add_many([NewJob(number) for number in range(600)])
    async with Worker("emails", ignore, queue.connection, concurrency=20, **keep) as worker:
        looks = 0
        while worker.stats.completed < 600:
            seen = await look(url)
            looks += 1
            codes = {one.code for one in seen.findings}
            assert codes.isdisjoint({"orphans", "locks", "stalled", "blocked", "no-worker", "not-examined"}), (
                seen.findings
            )
    assert looks


# --- times that have passed -----------------------------------------------------------------------------------------


def _ms() -> float:
    return LONG_AGO.timestamp() * 1000


async def _bullmq(client: redis.Redis, jobs: Any, unique: str, what: str) -> None:
    key = f"{unique}:emails:{'delayed' if what == 'delayed' else 'repeat'}"
    for member, _ in await client.zrange(key, 0, -1, withscores=True):
        await client.zadd(key, {member: _ms() * (0x1000 if what == "delayed" else 1)})


async def _bridgemq(client: redis.Redis, jobs: Any, unique: str, what: str) -> None:
    for kind in ("delayed",) if what == "delayed" else ("cron",):
        for member, _ in await client.zrange(f"{unique}:jobs:{kind}", 0, -1, withscores=True):
            await client.zadd(f"{unique}:jobs:{kind}", {member: _ms()})


async def _monque(client: redis.Redis, jobs: Collection[dict[str, Any]], unique: str, what: str) -> None:
    jobs.update_many({}, {"$set": {"nextRunAt": LONG_AGO}})


Stop = Callable[..., Awaitable[None]]


@pytest.mark.parametrize(
    ("protocol", "stop"),
    [("bullmq", _bullmq), ("bridgemq", _bridgemq), ("monque", _monque)],
    ids=["bullmq", "bridgemq", "monque"],
)
async def test_schedules_that_stopped_are_found(
    request: pytest.FixtureRequest, protocol: str, stop: Stop, client: redis.Redis, unique: str
) -> None:
    url = request.getfixturevalue(f"{protocol}_url")
    jobs = request.getfixturevalue("jobs") if protocol == "monque" else None
    async with Queue("emails", url) as queue:
        await queue.schedule("nightly", cron="0 3 * * *")
        assert await finding(url, "schedules-stopped") is None
        await stop(client, jobs, unique, "schedules")
        found = await finding(url, "schedules-stopped")
    assert found is not None, (await look(url)).findings
    assert (found.severity, found.queue) == (Severity.WARNING, "emails")
    assert found.evidence == "1 schedule late; nightly should have run 2 h ago"


@pytest.mark.parametrize(
    ("protocol", "stop"), [("bullmq", _bullmq), ("bridgemq", _bridgemq)], ids=["bullmq", "bridgemq"]
)
async def test_delayed_jobs_that_are_overdue_are_found(
    request: pytest.FixtureRequest, protocol: str, stop: Stop, client: redis.Redis, unique: str
) -> None:
    url = request.getfixturevalue(f"{protocol}_url")
    async with Queue("emails", url) as queue:
        job = await queue.add(1, delay=600)
        assert await finding(url, "delayed-overdue") is None
        await stop(client, None, unique, "delayed")
        found = await finding(url, "delayed-overdue")
    assert found is not None, (await look(url)).findings
    assert (found.severity, found.queue) == (Severity.WARNING, "emails")
    assert found.evidence == f"job {job.id} was due 2 h ago; 1 delayed in all"
