"""Accounts that lack a right: the worker does without it, says so in one line, and loses no job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from jobwire import Queue, Worker
from jobwire.backends.bullmq.keys import Keys
from jobwire.backends.bullmq.work import wakeup
from jobwire.boundary import Backend
from jobwire.embedded import Server
from jobwire.options import NewJob

from .jobs import add, claim, consumer
from .test_wait import FOR_EVER, blocked

Account = Callable[[str], Awaitable[str]]


@pytest.fixture
async def account(redis: Redis, prefix: str, jobwire_valkey: Server) -> AsyncIterator[Account]:
    """The URL of a user who may do everything but what is named."""
    user = prefix.replace("-", "")

    async def make(missing: str) -> str:
        await redis.execute_command("ACL", "SETUSER", user, "on", ">pw", "~*", "&*", "+@all", *missing.split())
        place = jobwire_valkey.url.rpartition("@")[2]
        return f"bullmq+redis://{user}:pw@{place}?prefix={prefix}"

    yield make
    await redis.execute_command("ACL", "DELUSER", user)


@pytest.mark.parametrize("missing", ["-client", "-time", "-bzpopmin", "-client -time -bzpopmin -info"])
async def test_a_worker_without_a_right_works_and_says_so_once(
    account: Account, missing: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeup, "LONGEST_WAIT", 0.2)
    monkeypatch.setattr(wakeup, "POLL_EVERY", 0.2)
    url = await account(missing)
    done: list[int] = []

    async def handle(job: Any) -> None:
        done.append(job.data)

    with caplog.at_level(logging.WARNING):
        async with Queue("q", url) as queue, Worker("q", handle, url, concurrency=2) as worker:
            for number in range(10):
                await queue.add(number)
                await eventually(lambda n=number: len(done) > n)
            await queue.add(10, delay=0.3)
            await eventually(lambda: len(done) == 11)
            await asyncio.sleep(0.6)  # several waits without work
            assert worker.stats.reconnects == 0
    assert sorted(done) == list(range(11))
    wanted = [right for right in ("CLIENT", "TIME", "BZPOPMIN") if f"-{right.lower()}" in missing]
    lines = [record.getMessage() for record in caplog.records]
    for right in wanted:
        # The queue and the worker have a connection each.
        assert 1 <= sum(f"may not run {right}" in line for line in lines) <= 2, lines
    assert all("may not run" in line for line in lines), lines


async def test_a_wait_that_is_broken_off_with_an_error_keeps_the_job_behind_it(
    backend: Backend, redis: Redis, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeup, "LONGEST_WAIT", FOR_EVER)
    worker = consumer(backend, name="w1")
    await claim(worker)
    for turn in range(1, 11):
        waiting = asyncio.create_task(worker.wait(FOR_EVER))
        [connection] = await eventually(lambda: blocked(redis, keys))
        await redis.lpush(keys.wait, f"j{turn}")  # without a marker, so that the error is what ends the wait
        await redis.hset(keys.job(f"j{turn}"), mapping={"name": "q", "data": "1", "opts": "{}"})
        await redis.execute_command("CLIENT", "UNBLOCK", connection["id"], "ERROR")
        await waiting
        [claimed] = await claim(worker)
        assert claimed.job.id == f"j{turn}"
        assert (await redis.get(keys.lock(f"j{turn}"))).decode() == claimed.token
        await redis.delete(keys.marker)
    await worker.close()


async def test_a_wait_that_is_refused_keeps_the_job_behind_it(
    account: Account, backend: Backend, redis: Redis, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    url = await account("-bzpopmin")
    await add(backend, NewJob(1))
    await claim(consumer(backend, "another"))
    ran = asyncio.Event()

    async def handle(job: Any) -> None:
        ran.set()

    async with Worker("q", handle, url):
        await asyncio.wait_for(ran.wait(), 10)
    assert await redis.llen(keys.active) == 0
