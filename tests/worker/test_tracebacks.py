"""The traceback of a failed run begins in the user's code, whatever runs it."""

from __future__ import annotations

import logging
import traceback
import uuid
from typing import Any

import pytest

from jobwire import ActiveJob, App, Queue, Unrecoverable, Worker
from jobwire.failure import begin_in_users_code
from worker import handlers


def frames(stack: str) -> list[str]:
    """The functions of a traceback, outermost first."""
    return [line.rpartition(" in ")[2] for line in stack.splitlines() if line.startswith("  File ")]


async def failing(job: ActiveJob) -> None:
    deeper()


def plainly_failing(job: Any) -> None:
    deeper()


def deeper() -> None:
    raise ValueError("no")


@pytest.mark.parametrize(
    ("handler", "executor", "outermost"),
    [
        (failing, None, ["failing", "deeper"]),
        (plainly_failing, None, ["plainly_failing", "deeper"]),
        (handlers.misbehave, "process", ["misbehave"]),
    ],
    ids=["async", "thread", "process"],
)
async def test_of_a_handler(
    handler: Any, executor: Any, outermost: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with Queue("q", f"memory:{uuid.uuid4().hex}") as queue:
        job = await queue.add("raise")
        with caplog.at_level(logging.ERROR, "jobwire"):
            await Worker("q", handler, queue.connection, executor=executor).run_until_idle()
        found = await queue.get(job.id)
    assert found is not None
    assert frames(found.stacktrace[-1]) == outermost
    [record] = caplog.records
    if executor == "process":
        assert frames(caplog.text) == outermost
        assert "ValueError: bad input" in caplog.text
        assert "RemoteError" not in caplog.text
    else:
        assert record.exc_info is not None
        assert [one.name for one in traceback.extract_tb(record.exc_info[2])] == outermost


async def test_of_a_task_with_middleware_and_a_cause() -> None:
    async def middleware(job: ActiveJob, call_next: Any) -> Any:
        return await call_next(job)

    app = App(f"memory:{uuid.uuid4().hex}", middleware=[middleware])

    @app.task
    async def work() -> None:
        try:
            deeper()
        except ValueError as error:
            raise KeyError("yes") from error

    async with app:
        job = await work.add()
        await app.worker().run_until_idle()
        found = await work.get(job.id)
    assert found is not None
    cause, _, stack = found.stacktrace[-1].partition("The above exception")
    assert frames(cause) == ["work", "deeper"]
    assert frames(stack)[0] == "middleware"
    assert frames(stack)[-1] == "work"


async def test_of_an_error_of_jobwires_own_there_is_none() -> None:
    app = App(f"memory:{uuid.uuid4().hex}")

    @app.task
    async def work(number: int) -> None: ...

    async with app:
        job = await app.queue("work").add({"number": "x"}, name="work")
        await app.worker().run_until_idle()
        found = await work.get(job.id)
    assert found is not None
    assert frames(found.stacktrace[-1]) == []
    assert "data.number: must be int, not str" in found.stacktrace[-1]


def test_a_circle_of_causes_ends() -> None:
    with pytest.raises(ValueError, match="no") as raised:
        deeper()
    error, other = raised.value, Unrecoverable("y")
    error.__cause__, other.__cause__ = other, error
    begin_in_users_code(error)
    assert [one.name for one in traceback.extract_tb(error.__traceback__)][-1] == "deeper"
