"""on_failed hooks and clean-up that misbehave: the worker goes on, and ends in time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from awaiting import eventually
from jobwire import App, Depends, InvalidOption
from jobwire.tasks import life
from jobwire.worker import abandoning


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(life, "_LEAST_PATIENCE", 0.05)
    monkeypatch.setattr(abandoning, "_LAST_STEPS", 0.05)
    return


def app_with(hook: Any, unique: str) -> tuple[App, Any]:
    app = App(f"memory:{unique}")

    @app.task
    async def work(number: int) -> int:
        if number == 0:
            raise ValueError("no")
        return number

    app.on_failed(hook)
    return app, work


def exits(job: Any) -> None:
    sys.exit(4)


async def exits_in_the_loop(job: Any) -> None:
    sys.exit(4)


def stops(job: Any) -> None:
    raise StopIteration("over")


@pytest.mark.parametrize("hook", [exits, exits_in_the_loop, stops])
async def test_a_hook_that_raises_anything_is_logged_and_stops_nothing(
    hook: Any, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, work = app_with(hook, unique)
    async with app, app.worker(worker_id="w-1"):
        failed = await work.add(0)
        await eventually(lambda: "the on_failed hook" in caplog.text)
        assert await (await work.add(5)).wait(5) == 5
    [record] = [record for record in caplog.records if "the on_failed hook" in record.getMessage()]
    about = {"worker": "w-1", "queue": "work", "job": failed.id, "attempt": 1, "category": "permanent"}
    assert {name: vars(record).get(name) for name in about} == about


class AsyncObject:
    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    async def __call__(self, job: Any) -> None:
        self._seen.append(job.id)


@pytest.mark.parametrize("through_a_function", [True, False])
async def test_a_hook_may_be_any_callable_whose_result_is_awaitable(*, through_a_function: bool, unique: str) -> None:
    seen: list[str] = []
    hook = AsyncObject(seen)

    def returns_a_coroutine(job: Any) -> Any:
        return hook(job)

    app, work = app_with(returns_a_coroutine if through_a_function else hook, unique)
    async with app, app.worker():
        job = await work.add(0)
        await eventually(lambda: seen == [job.id])


async def hangs(job: Any) -> None:
    await asyncio.sleep(3600)


async def swallows(job: Any) -> None:
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


@pytest.mark.parametrize("hook", [hangs, swallows])
async def test_a_hook_that_does_not_end_does_not_keep_the_worker_from_ending(
    hook: Any, unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    app, work = app_with(hook, unique)
    async with app:
        async with asyncio.timeout(10):
            async with app.worker(shutdown_timeout=0.05) as worker:
                job = await work.add(0)
                await eventually(lambda: worker.stats.failed)
    assert f"cancelled an on_failed hook for job {job.id} of queue work" in caplog.text


async def test_a_clean_up_that_does_not_end_does_not_keep_the_worker_from_ending(
    unique: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def provider() -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(3600)

    app = App(f"memory:{unique}")

    @app.task
    async def work(value: int = Depends(provider, scope="process")) -> int:
        return value

    async with app:
        async with asyncio.timeout(10):
            async with app.worker(shutdown_timeout=0.05):
                assert await (await work.add()).wait(5) == 1
    assert 'the clean-up of dependencies with scope="process" took longer than 0.05 s' in caplog.text


def test_a_hook_without_an_argument_is_refused(unique: str) -> None:
    with pytest.raises(InvalidOption, match="on_failed: must be a function that takes the failed job"):
        app_with(lambda: None, unique)
