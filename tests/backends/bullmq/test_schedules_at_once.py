"""Schedules put by many callers at once share round trips, and nothing else."""

from __future__ import annotations

import asyncio

import pytest
from redis.asyncio import Redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend
from jobwire.connection import load_backend
from jobwire.errors import StoreRefused, StoreUnavailable
from jobwire.urls import parse

from .test_schedules import put


async def test_all_are_made_though_the_server_has_forgotten_the_script(
    backend: Backend, redis: Redis, keys: Keys
) -> None:
    await redis.script_flush()
    made = await asyncio.gather(*(put(backend, f"s{number}", every=3600) for number in range(250)))
    assert [schedule.key for schedule in made] == [f"s{number}" for number in range(250)]
    assert await redis.zcard(keys.repeat) == 250


async def test_one_that_is_refused_keeps_no_other_from_being_made(backend: Backend, redis: Redis, keys: Keys) -> None:
    await redis.set(keys.scheduler("bad"), "no record")
    answers = await asyncio.gather(
        *(put(backend, key, every=3600) for key in ("first", "bad", "last")), return_exceptions=True
    )
    assert [type(answer).__name__ for answer in answers] == ["Schedule", "StoreRefused", "Schedule"]
    assert isinstance(answers[1], StoreRefused)
    assert sorted(await redis.zrange(keys.repeat, 0, -1)) == [b"first", b"last"]


async def test_a_caller_that_gives_up_takes_nobody_along(backend: Backend) -> None:
    callers = [asyncio.create_task(put(backend, f"s{number}", every=3600)) for number in range(5)]
    await asyncio.sleep(0)
    callers[3].cancel()
    answers = await asyncio.gather(*callers, return_exceptions=True)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [False] * 3 + [True, False]


async def test_without_a_server_every_caller_is_told() -> None:
    backend = load_backend(parse("bullmq+redis://127.0.0.1:1/0"))
    with pytest.raises(StoreUnavailable):
        await backend.open()
    answers = await asyncio.gather(
        *(put(backend, f"s{number}", every=60) for number in range(3)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    await backend.close()
