"""The whole way of a job, on every kind of server that jobwire promises to work with.

The other tests run on Valkey. These go once through all that is different in older servers: commands and options that
came later, errors in scripts, how sets are kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire import (
    ActiveJob,
    AddStatus,
    Backoff,
    Connection,
    NewJob,
    Queue,
    Rate,
    Snooze,
    Unique,
    Unrecoverable,
    Worker,
)
from jobwire.errors import JobFailed
from jobwire.flow import Flow, FlowJob
from jobwire.model import Event, State
from jobwire.native import BullMQWorker
from jobwire.options import Keep

from .jobs import claim, consumer
from .redis_62 import KINDS, redis_62

VERSIONS = {"Valkey": ("valkey", (9, 1)), "Redis 6.2": ("redis", (6, 2))}
QUEUE = "q"


@pytest.fixture(scope="module")
def old_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_62(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def server(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "Valkey":
        return request.getfixturevalue("jobwire_valkey").url
    return request.getfixturevalue("old_redis")


@pytest.fixture
async def redis(server: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(server) as client:
        yield client


@pytest.fixture
def url(server: str, prefix: str) -> str:
    return f"bullmq+{server}?prefix={prefix}"


@pytest.fixture
def queue_name() -> str:
    return QUEUE


async def echo(job: ActiveJob) -> Any:
    return job.data


async def test_the_server_is_of_the_kind_that_is_meant(redis: Redis, kind: str) -> None:
    about = await redis.info("server")
    found = about.get("valkey_version") or about["redis_version"]
    name, version = VERSIONS[kind]
    assert (about.get("server_name", "redis"), tuple(map(int, found.split(".")[:2]))) == (name, version)


async def test_jobs_run_in_their_order(queue: Queue, work: Callable[..., Worker]) -> None:
    ran: list[str] = []

    async def handle(job: ActiveJob) -> None:
        ran.append(job.data)

    await queue.add_many([NewJob("late", priority=2), NewJob("early", priority=1), NewJob("plain")])
    await queue.add("front", lifo=True)
    last = await queue.add("delayed", delay=0.2)
    async with work(handle):
        await last.wait(20)
    assert [one for one in ran if one != "delayed"] == ["front", "plain", "early", "late"]
    assert ran.count("delayed") == 1  # on a busy machine it is due before the others have run


async def test_a_thousand_jobs_run_in_batches(queue: Queue, work: Callable[..., Worker]) -> None:
    added = await queue.add_many([NewJob(number) for number in range(1000)])
    async with work(echo, concurrency=100):
        assert [await job.wait(30) for job in added] == list(range(1000))
    counts = await queue.counts()
    assert counts[State.COMPLETED] == sum(counts.values()) == 1000


async def test_failed_runs_are_tried_again_at_once_and_later(queue: Queue, work: Callable[..., Worker]) -> None:
    async def handle(job: ActiveJob) -> int:
        if job.data == "hopeless":
            raise Unrecoverable("no hope")
        if job.data == "sleepy" and (await queue.get(job.id)).raw["ats"] == b"1":
            raise Snooze(0.01)
        if job.attempts_made < 2 and job.data != "sleepy":
            raise ValueError("not yet")
        return job.attempts_made

    at_once = await queue.add("now", attempts=3)
    later = await queue.add("later", attempts=3, backoff=Backoff.exponential(0.01))
    sleepy, hopeless = await queue.add("sleepy"), await queue.add("hopeless", attempts=3)
    async with work(handle):
        assert [await at_once.wait(20), await later.wait(20), await sleepy.wait(20)] == [2, 2, 0]
        with pytest.raises(JobFailed, match="no hope"):
            await hopeless.wait(20)
    await queue.admin.retry(hopeless.id)
    assert (await queue.get(hopeless.id)).state is State.WAITING


async def test_a_flow_runs_from_its_leaves_up(connection: Connection, work: Callable[..., Worker]) -> None:
    async def handle(job: ActiveJob) -> Any:
        if job.data == "torn":
            raise Unrecoverable("torn")
        return sorted((await job.children_values()).values()) or job.data

    async with Flow(connection) as flow, work(handle):
        pages = [FlowJob(QUEUE, 1), FlowJob(QUEUE, 2), FlowJob(QUEUE, "torn", on_failure="ignore")]
        book = await flow.add(FlowJob(QUEUE, "book", children=pages))
        assert await book.job.wait(20) == [1, 2]
        doomed = await flow.add(FlowJob(QUEUE, "doomed", children=[FlowJob(QUEUE, "torn", on_failure="fail")]))
        with pytest.raises(JobFailed, match="failed"):
            await doomed.job.wait(20)


async def test_schedules_go_on_for_as_long_as_they_should(queue: Queue, work: Callable[..., Worker]) -> None:
    ran: list[Any] = []

    async def handle(job: ActiveJob) -> None:
        ran.append(job.data)

    await queue.schedule("pulse", every=0.05, limit=3, data="tick")
    await queue.schedule("yearly", cron="0 0 1 1 *", data="new year")
    async with work(handle):
        await eventually(lambda: len(ran) == 3)
    assert ran == ["tick"] * 3
    assert {schedule.key for schedule in await queue.schedules()} == {"pulse", "yearly"}
    assert await queue.unschedule("yearly")
    assert (await queue.counts())[State.DELAYED] == 0


async def test_limits_of_the_queue_hold(queue: Queue, work: Callable[..., Worker]) -> None:
    running, most, starts = set[str](), list[int](), list[float]()

    async def handle(job: ActiveJob) -> None:
        starts.append(time.monotonic())
        running.add(job.id)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.remove(job.id)

    await queue.admin.limit_concurrency(2)
    await queue.admin.limit_rate(Rate(4, per=0.3))
    await queue.add_many([NewJob(number) for number in range(6)])
    async with work(handle, concurrency=5) as worker:
        await eventually(lambda: worker.stats.completed == 6)
    assert max(most) == 2
    assert starts[4] - starts[0] >= 0.25, starts
    assert (await queue.admin.limits()).rate == Rate(4, per=0.3)


async def test_a_unique_key_lets_one_job_in(queue: Queue, work: Callable[..., Worker]) -> None:
    first = await queue.add(1, unique=Unique("k"))
    assert (await queue.add(2, unique=Unique("k"))).add_status is AddStatus.DUPLICATE
    await queue.add(1, delay=60, unique=Unique("d", ttl=60, replace=True))
    replacing = await queue.add(2, delay=60, unique=Unique("d", ttl=60, replace=True))
    assert await queue.admin.unique_owner("d") == replacing.id
    async with work(echo):
        await first.wait(20)
    assert (await queue.add(3, unique=Unique("k"))).add_status is AddStatus.ADDED


async def test_finished_jobs_are_kept_as_asked(queue: Queue, work: Callable[..., Worker]) -> None:
    options = {"keep_completed": Keep(count=2, age=3600)}
    await queue.add_many([NewJob(number, **options) for number in range(5)])
    await queue.add("gone", keep_completed=Keep.NONE)
    async with work(echo, native=BullMQWorker(metrics=5)) as worker:
        await eventually(lambda: worker.stats.completed == 6)
    assert {job.data for job in await queue.jobs(State.COMPLETED)} == {3, 4}


async def test_a_job_whose_worker_died_is_run_by_another(queue: Queue, work: Callable[..., Worker]) -> None:
    added = await queue.add("left behind")
    dead = consumer(queue.connection.backend, lease=0.2, recover_every=0.1)
    await claim(dead)
    async with work(echo, lease=0.5, recover_every=0.1) as worker:
        assert await added.wait(20) == "left behind"
        assert worker.stats.recovered == 1
    assert (await queue.get(added.id)).raw["stc"] == b"1"
    await dead.close()


async def test_an_idle_worker_is_woken(queue: Queue, work: Callable[..., Worker], redis: Redis, prefix: str) -> None:
    async def asleep() -> bool:
        return any(one["name"].startswith(prefix) and "b" in one["flags"] for one in await redis.client_list())

    async with work(echo, name="w") as worker:
        await eventually(asleep)
        assert [one.name for one in await queue.admin.workers()] == ["w"]
        await (await queue.add(1)).wait(20)
        await eventually(asleep)
        await (await queue.add(2, delay=0.05)).wait(20)
        await eventually(lambda: worker.stats.completed == 2)


async def test_a_job_tells_its_life(queue: Queue, work: Callable[..., Worker]) -> None:
    async def handle(job: ActiveJob) -> str:
        await job.update_progress(50)
        await job.log("half way")
        return "done"

    events: list[Event] = []

    async def listen() -> None:
        async for event in queue.events(since="0"):
            events.append(event)
            if event.native_type == "drained":
                return

    async with work(handle):
        job = await queue.add(1)
        async with asyncio.timeout(20):
            await listen()
    lives = [event.native_type for event in events if event.job_id == job.id]
    assert lives == ["added", "waiting", "active", "progress", "completed"]
    assert await queue.logs(job.id) == ["half way"]


async def test_an_operator_can_change_everything(queue: Queue) -> None:
    first, second, third = await queue.add_many([NewJob(1), NewJob(2, priority=3), NewJob(3, delay=60)])
    await queue.admin.pause()
    await queue.add(4)
    await queue.admin.update_data(first.id, "new")
    await queue.admin.change_priority(second.id, 1)
    await queue.admin.change_delay(third.id, 30)
    await queue.admin.promote(third.id)
    assert (await queue.counts())[State.WAITING] == 4
    await queue.admin.resume()
    await queue.admin.remove(first.id)
    await queue.admin.drain()
    assert sum((await queue.counts()).values()) == 0
    await queue.add(5)
    assert len(await queue.admin.clean(State.WAITING)) == 1
    await queue.admin.obliterate(force=True)


async def test_scripts_that_the_server_forgot_are_given_again(
    queue: Queue, work: Callable[..., Worker], redis: Redis
) -> None:
    async with work(echo):
        await (await queue.add(1)).wait(20)
        await redis.script_flush()
        assert await (await queue.add(2)).wait(20) == 2
