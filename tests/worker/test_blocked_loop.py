"""Code of the user's that blocks the event loop is named as what it is."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from awaiting import eventually
from jobwire import App, Backoff, Connection, JobFailed, Queue, Worker
from jobwire.worker import loop_watch

pytestmark = pytest.mark.usefixtures("soon")


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports a loop that is blocked for a fifth of a second."""
    monkeypatch.setattr(loop_watch, "_BLOCKED", 0.2)
    monkeypatch.setattr(loop_watch, "_BEAT", 0.05)


def hog() -> None:
    time.sleep(0.6)


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The reports about `hog`. A busy machine may add others, about jobwire."""
    return [text for one in caplog.records if "hog (" in (text := one.getMessage()) and "has been blocked" in text]


async def test_a_task_of_a_handler_is_reported_with_its_job(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def part() -> None:
        hog()

    async def handler(job: Any) -> None:
        await asyncio.gather(part())

    async with Worker("work", handler, connection):
        job = await queue.add(1)
        await job.wait(10)
        [report] = await eventually(lambda: reports(caplog))
    assert f"by the handler of job {job.id}, at part (" in report


async def test_an_observer_is_reported_as_one(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    class Slow:
        def started(self, claim: Any) -> None:
            hog()

        def settled(self, outcome: Any, verdict: Any) -> None: ...

    async def handler(job: Any) -> None: ...

    async with Worker("work", handler, connection, observers=[Slow()]):
        await (await queue.add(1)).wait(10)
        [report] = await eventually(lambda: reports(caplog))
    assert "by an observer, at started (" in report
    assert "plain def" not in report


async def test_a_backoff_strategy_is_reported_as_one(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    def slow(failures: int, job: Any, error: str) -> None:
        hog()

    async def handler(job: Any) -> None:
        raise ValueError("no")

    async with Worker("work", handler, connection, backoff=slow):  # type: ignore[arg-type]
        job = await queue.add(1, attempts=2, backoff=Backoff.custom("slow"))
        with pytest.raises(JobFailed):
            await job.wait(10)
        [report] = await eventually(lambda: reports(caplog))
    assert "by a backoff strategy, at slow (" in report


async def test_each_task_of_an_app_is_reported(unique: str, caplog: pytest.LogCaptureFixture) -> None:
    app = App(f"memory:{unique}")

    @app.task
    async def first() -> None:
        hog()

    @app.task
    async def second() -> None:
        hog()

    async with app, app.worker():
        for task in (first, second):
            await (await task.add()).wait(10)
    assert [name for name in ("first", "second") if any(f"at {name} (" in one for one in reports(caplog))] == [
        "first",
        "second",
    ]
