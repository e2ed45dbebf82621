"""An idle worker wakes when a job is there, and one that stops waiting takes nobody's wake-up with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.work import wakeup
from jobwire.backends.redisio.blocking import BlockingLink
from jobwire.boundary import Backend, Completed, Consumer
from jobwire.embedded import Server
from jobwire.errors import JobwireError, StoreUnavailable
from jobwire.options import NewJob
from jobwire.rate import Rate

from .jobs import add, claim, consumer
from .peer import node

FOR_EVER = 3600.0


@pytest.fixture(autouse=True)
def no_look_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that look for jobs by themselves every few seconds would hide a wake-up that was lost. Without that a
    wait ends because of what happened, however slow the machine is, or with the time that a test has."""
    monkeypatch.setattr(wakeup, "LONGEST_WAIT", FOR_EVER)
    monkeypatch.setattr(wakeup, "LONGEST_WAIT_FOR_DUE", FOR_EVER)


@pytest.fixture
async def worker(backend: Backend) -> AsyncIterator[Consumer]:
    worker = consumer(backend, name="w1")
    yield worker
    await worker.close()


async def blocked(redis: Redis, keys: Keys, worker: str = "w1") -> list[dict[str, str]]:
    """The connections of this worker that the server has blocked."""
    name = keys.connection_name(worker)
    return [one for one in await redis.client_list() if one["name"] == name and "b" in one["flags"]]


async def test_an_idle_worker_wakes_at_once_when_a_job_is_added(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await add(backend, NewJob(1))
    await waiting
    assert len(await claim(worker)) == 1


async def test_node_wakes_us(worker: Consumer, redis: Redis, keys: Keys, prefix: str, jobwire_valkey: Server) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await node(jobwire_valkey.url, [prefix], "await queueOf(prefixes[0]).add('n', {});")
    await waiting
    assert len(await claim(worker)) == 1


async def test_we_wake_node(backend: Backend, redis: Redis, keys: Keys, prefix: str, jobwire_valkey: Server) -> None:
    script = """const options = { connection, prefix: prefixes[0], name: "n1", drainDelay: 3600 };
                const w = new Worker("q", async (job) => job.data, options);
                await new Promise((go) => w.on("completed", (job, value) => { say(value); go(); })); await w.close();"""
    running = asyncio.create_task(node(jobwire_valkey.url, [prefix], script))
    await eventually(lambda: blocked(redis, keys, "n1"))
    await add(backend, NewJob(2))
    assert await running == [2]


async def test_a_wait_without_work_lasts_as_long_as_asked(worker: Consumer) -> None:
    began = time.monotonic()
    await worker.wait(0.2)
    assert time.monotonic() - began >= 0.2


async def test_a_worker_sleeps_until_a_delayed_job_is_due(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    added = time.time()
    await add(backend, NewJob(1, delay=0.3))
    await waiting
    assert time.time() - added >= 0.29
    assert len(await claim(worker)) == 1


@pytest.fixture
def no_server_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the server block for ever, so that only a marker or the worker itself can end a wait."""
    call = BlockingLink.call

    async def without_timeout(self: BlockingLink, *command: Any, **options: Any) -> Any:
        return await call(self, *(("BZPOPMIN", command[1], "0") if command[0] == "BZPOPMIN" else command), **options)

    monkeypatch.setattr(BlockingLink, "call", without_timeout)


@pytest.fixture
def ended_waits(monkeypatch: pytest.MonkeyPatch) -> list[BlockingLink]:
    """Collects the connections whose waits a worker has asked the server to end."""
    unblock, asked = BlockingLink.unblock, list[BlockingLink]()

    async def noted(self: BlockingLink) -> None:
        asked.append(self)
        await unblock(self)

    monkeypatch.setattr(BlockingLink, "unblock", noted)
    return asked


@pytest.mark.usefixtures("no_server_timeout")
@pytest.mark.parametrize("rate", [None, Rate(100, per=1)], ids=["early claim", "rate limit"])
async def test_the_workers_own_timer_ends_the_wait_for_a_delayed_job(backend: Backend, rate: Rate | None) -> None:
    worker = consumer(backend, name="w1", rate=rate)
    await add(backend, NewJob(1, delay=0.3))
    await worker.wait(FOR_EVER)
    assert [one.job.id for one in await claim(worker)] == ["1"]
    await worker.close()


@pytest.mark.usefixtures("no_server_timeout")
async def test_delayed_jobs_end_one_wait_each_and_no_later_one(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys, ended_waits: list[BlockingLink]
) -> None:
    for turn in range(1, 4):
        await add(backend, NewJob(turn, delay=0.05))
        await worker.wait(FOR_EVER)
        assert [one.job.id for one in await claim(worker)] == [str(turn)]
        assert len(ended_waits) == turn
        await redis.delete(keys.marker)  # a claim leaves one
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await add(backend, NewJob(4))
    await waiting
    assert [one.job.id for one in await claim(worker)] == ["4"]


async def test_without_delayed_jobs_no_wait_is_ended_by_the_worker(
    worker: Consumer, ended_waits: list[BlockingLink]
) -> None:
    await worker.wait(0.05)
    assert not ended_waits


async def test_a_worker_closes_while_it_ends_a_wait(backend: Backend, keys: Keys, redis: Redis) -> None:
    """The worker is closed at many moments around the time when its delayed job is due."""
    for turn in range(12):
        worker = consumer(backend, name="w1")
        await add(backend, NewJob(turn, delay=0.02))
        waiting = asyncio.create_task(worker.wait(FOR_EVER))
        await asyncio.sleep(0.016 + turn * 0.001)
        waiting.cancel()
        await asyncio.wait([waiting])
        await worker.close()
        assert await redis.llen(keys.active) == 0
        await redis.delete(keys.wait, keys.marker, keys.delayed)


async def test_a_ready_job_wakes_a_worker_that_sleeps_for_a_delayed_one(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1, delay=3600))
    settled = await worker.settle([], 1)
    assert settled.next_in == pytest.approx(3600, abs=120)
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await add(backend, NewJob(2))
    await waiting
    assert [one.job.id for one in await claim(worker)] == ["2"]


async def test_the_blocking_connection_is_named_as_node_names_its_own(
    worker: Consumer, redis: Redis, keys: Keys, prefix: str, jobwire_valkey: Server
) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    script = "say((await queueOf(prefixes[0]).getWorkers()).map((one) => one.rawname));"
    assert await node(jobwire_valkey.url, [prefix], script) == [[f"{prefix}:cQ==:w:w1"]]
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_wait_that_is_given_up_ends_on_the_server_too(worker: Consumer, redis: Redis, keys: Keys) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    async def free() -> bool:
        return not await blocked(redis, keys)

    await eventually(free)


async def test_waits_given_up_at_any_moment_lose_no_wake_up(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    """Whatever the moment of giving up, the marker of a job that still waits is there for another worker."""
    for step in range(40):
        waiting = asyncio.create_task(worker.wait(FOR_EVER))
        adding = asyncio.create_task(add(backend, NewJob(step)))
        await asyncio.sleep(step * 0.0001)
        waiting.cancel()
        taken = (await asyncio.gather(waiting, return_exceptions=True))[0]
        await adding
        await worker.close()
        if isinstance(taken, asyncio.CancelledError):
            assert await redis.zscore(keys.marker, "0") == 0, f"lost in step {step}"
        [one] = await claim(worker)
        await worker.settle([Completed(one, b"1")], 0)
        await redis.delete(keys.marker)


async def test_a_worker_that_closes_leaves_the_delay_marker_to_others(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    await add(backend, NewJob(1, delay=3600))
    waiting = asyncio.create_task(worker.wait(FOR_EVER))

    async def taken() -> bool:
        return not await redis.exists(keys.marker) and bool(await blocked(redis, keys))

    await eventually(taken)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await worker.close()
    assert await redis.zscore(keys.marker, "1") == pytest.approx(time.time() * 1000 + 3_600_000, abs=120_000)


async def test_a_wake_up_can_be_passed_on(backend: Backend, worker: Consumer, redis: Redis, keys: Keys) -> None:
    other = consumer(backend, name="w2")
    waiting = asyncio.create_task(other.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys, "w2"))
    await worker.pass_on()
    await waiting
    await other.close()


async def test_a_dead_connection_is_told_and_the_next_wait_has_a_new_one(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    [connection] = await blocked(redis, keys)
    await redis.client_kill_filter(_id=connection["id"])
    with pytest.raises(StoreUnavailable):
        await waiting
    await worker.reset()
    await add(backend, NewJob(1))
    await worker.wait(FOR_EVER)
    assert len(await claim(worker)) == 1


async def test_a_worker_wakes_with_its_job_in_hand(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await add(backend, NewJob(1))
    await waiting
    assert await redis.lrange(keys.active, 0, -1) == [b"1"]
    [claim_of_one] = await claim(worker)
    assert claim_of_one.job.id == "1"
    assert (await redis.get(keys.lock("1"))).decode() == claim_of_one.token


async def test_a_job_in_hand_that_nobody_has_room_for_goes_back_uncharged(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await add(backend, NewJob(1), NewJob(2))
    await waiting
    await worker.pass_on()
    assert await redis.lrange(keys.wait, 0, -1) == [b"2", b"1"]
    assert await redis.llen(keys.active) == 0
    assert await redis.hget(keys.job("1"), "atm") is None
    assert await redis.zscore(keys.marker, "0") == 0


async def test_a_wait_given_up_while_its_job_comes_hands_it_back(backend: Backend, redis: Redis, keys: Keys) -> None:
    for turn in range(20):
        worker = consumer(backend, name="w1")
        waiting = asyncio.create_task(worker.wait(FOR_EVER))
        await eventually(lambda: blocked(redis, keys))
        adding = asyncio.create_task(add(backend, NewJob(turn)))
        for _ in range(turn):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting, adding])
        await worker.close()
        assert await redis.llen(keys.active) == 0
        assert await redis.llen(keys.wait) == 1
        await redis.delete(keys.wait, keys.marker)


async def test_the_start_of_a_job_in_hand_is_told_by_the_servers_clock(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 3600)
    waiting = asyncio.create_task(worker.wait(FOR_EVER))
    await eventually(lambda: blocked(redis, keys))
    await add(backend, NewJob(1))
    await waiting
    started = int(await redis.hget(keys.job("1"), "processedOn"))
    assert started == pytest.approx(clock() * 1000, abs=120_000)


async def test_a_connection_dropped_at_any_moment_of_a_wait_is_an_outage(
    backend: Backend, worker: Consumer, redis: Redis, keys: Keys
) -> None:
    """The engine resets a consumer when any of its calls fails, whatever its listener does at that moment."""
    await claim(worker)
    for turn in range(60):
        waiting = asyncio.create_task(worker.wait(FOR_EVER))
        if turn % 2:
            await eventually(lambda: blocked(redis, keys))
        ringing = asyncio.create_task(redis.zadd(keys.marker, {"0": 0}))
        for _ in range(turn // 2 % 12):
            await asyncio.sleep(0)
        await worker.reset()
        [ended] = await asyncio.gather(waiting, return_exceptions=True)
        assert ended is None or isinstance(ended, JobwireError), f"turn {turn}: {ended!r}"
        await ringing
        await redis.delete(keys.marker)
