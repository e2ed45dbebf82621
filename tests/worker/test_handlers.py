"""What a handler may be and do, and what becomes of its job."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import Any

import pytest

from jobwire import Connection, InvalidOption, JobFailed, Queue, Snooze, State, Unrecoverable, Worker
from worker import handlers


async def test_a_coroutine_function_runs_in_the_event_loop(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> dict[str, Any]:
        return {"main": threading.current_thread() is threading.main_thread(), "data": job.data}

    async with Worker("work", handler, connection):
        assert await (await queue.add(1)).wait(10) == {"main": True, "data": 1}


async def test_a_plain_function_runs_in_a_thread_with_blocking_job_methods(
    queue: Queue, connection: Connection
) -> None:
    def handler(job: Any) -> bool:
        job.update_progress({"step": 1})
        job.log("one line")
        job.extend()
        return threading.current_thread() is threading.main_thread()

    async with Worker("work", handler, connection):
        job = await queue.add(1)
        assert await job.wait(10) is False
    stored = await queue.get(job.id)
    assert stored is not None
    assert stored.progress == {"step": 1}
    assert list(await queue.logs(job.id)) == ["one line"]


async def test_a_callable_object_with_an_async_call_is_a_coroutine_function(
    queue: Queue, connection: Connection
) -> None:
    class Handler:
        async def __call__(self, job: Any) -> str:
            return "called"

    async with Worker("work", Handler(), connection):
        assert await (await queue.add(1)).wait(10) == "called"


@pytest.mark.slow
async def test_a_process_handler_runs_elsewhere_and_reports_back(queue: Queue, connection: Connection) -> None:
    async with Worker("work", handlers.report, connection, executor="process"):
        job = await queue.add(1)
        result = await job.wait(30)
    assert result["pid"] != os.getpid()
    assert result["token"]
    stored = await queue.get(job.id)
    assert stored is not None
    assert stored.progress == 50
    assert list(await queue.logs(job.id)) == ["half way"]


@pytest.mark.slow
async def test_an_async_handler_may_run_in_a_process(queue: Queue, connection: Connection) -> None:
    async with Worker("work", handlers.double_async, connection, executor="process"):
        assert await (await queue.add(21)).wait(30) == 42


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("exit", "exit code 3"),
        ("kill", "killed by SIGKILL"),
        ("sys.exit", "4"),
        ("raise", "bad input"),
        ("unrecoverable", "no use"),
        ("unserialisable", "result"),
    ],
)
async def test_a_process_that_misbehaves_fails_its_own_job_only(
    queue: Queue, connection: Connection, how: str, reason: str
) -> None:
    async with Worker("work", handlers.misbehave, connection, executor="process", concurrency=2) as worker:
        bad, good = await queue.add(how), await queue.add("good")
        with pytest.raises(JobFailed, match=reason):
            await bad.wait(30)
        assert await good.wait(30) == "fine"
        assert await (await queue.add("after")).wait(30) == "fine"
        assert (worker.stats.completed, worker.stats.failed) == (2, 1)


@pytest.mark.slow
async def test_a_process_handler_can_snooze(queue: Queue, connection: Connection) -> None:
    async with Worker("work", handlers.misbehave, connection, executor="process") as worker:
        assert await (await queue.add("snooze")).wait(30) == "fine"
        assert worker.stats.snoozed == 1


@pytest.mark.slow
async def test_a_process_beyond_its_timeout_is_killed(queue: Queue, connection: Connection) -> None:
    async with Worker("work", handlers.misbehave, connection, executor="process", timeout=4.0):
        with pytest.raises(JobFailed, match="longer than its timeout of 4 s"):
            await (await queue.add("hang")).wait(30)
        assert await (await queue.add("good")).wait(30) == "fine"


async def test_an_async_handler_beyond_its_timeout_is_cancelled(queue: Queue, connection: Connection) -> None:
    cancelled = asyncio.Event()

    async def handler(job: Any) -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with Worker("work", handler, connection, timeout=0.1):
        with pytest.raises(JobFailed, match="longer than its timeout"):
            await (await queue.add(1)).wait(10)
    assert cancelled.is_set()


async def test_a_thread_beyond_its_timeout_is_abandoned_and_reported(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()

    def handler(job: Any) -> str:
        if job.data == "hang":
            release.wait(60)
        return "fine"

    with caplog.at_level(logging.WARNING, "jobwire.worker"):
        async with Worker("work", handler, connection, timeout=1.0):
            with pytest.raises(JobFailed, match="longer than its timeout"):
                await (await queue.add("hang")).wait(20)
            assert await (await queue.add("good")).wait(10) == "fine"
    release.set()
    assert "abandoned thread" in caplog.text


async def test_a_timeout_error_of_the_handler_itself_is_its_own(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None:
        raise TimeoutError("the mail server did not answer")

    async with Worker("work", handler, connection, timeout=5):
        with pytest.raises(JobFailed, match="the mail server did not answer"):
            await (await queue.add(1)).wait(10)


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyError("x"), SystemExit(1), asyncio.CancelledError(), StopIteration()]
)
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_whatever_a_handler_raises_the_worker_goes_on(
    queue: Queue, connection: Connection, error: BaseException, kind: str
) -> None:
    async def in_loop(job: Any) -> str:
        if job.data == "bad":
            raise error
        return "fine"

    def in_thread(job: Any) -> str:
        if job.data == "bad":
            raise error
        return "fine"

    async with Worker("work", in_loop if kind == "async" else in_thread, connection) as worker:
        bad = await queue.add("bad")
        with pytest.raises(JobFailed):
            await bad.wait(10)
        assert await (await queue.add("good")).wait(10) == "fine"
        assert worker.stats.failed == 1


async def test_unrecoverable_fails_at_once_whatever_attempts_are_left(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None:
        raise Unrecoverable("card stolen")

    async with Worker("work", handler, connection) as worker:
        job = await queue.add(1, attempts=5)
        with pytest.raises(JobFailed, match="card stolen"):
            await job.wait(10)
        assert worker.stats.retried == 0


async def test_a_snoozed_job_comes_back_without_a_charge(queue: Queue, connection: Connection) -> None:
    seen: list[tuple[float, int]] = []

    async def handler(job: Any) -> str:
        seen.append((time.monotonic(), job.attempts_made))
        if len(seen) == 1:
            raise Snooze(0.2)
        return "done"

    async with Worker("work", handler, connection):
        assert await (await queue.add(1)).wait(10) == "done"
    assert [made for _, made in seen] == [0, 0]
    assert seen[1][0] - seen[0][0] >= 0.19


async def test_a_result_that_is_not_json_fails_the_job_and_names_the_place(
    queue: Queue, connection: Connection
) -> None:
    async def handler(job: Any) -> Any:
        return {"when": object()}

    async with Worker("work", handler, connection):
        with pytest.raises(JobFailed, match=r"result\.when"):
            await (await queue.add(1)).wait(10)


async def test_the_stored_failure_has_the_message_and_the_stack(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None:
        raise RuntimeError("printer on fire")

    async with Worker("work", handler, connection):
        job = await queue.add(1)
        with pytest.raises(JobFailed):
            await job.wait(10)
    stored = await queue.get(job.id)
    assert stored is not None
    assert stored.state is State.FAILED
    assert stored.error == "printer on fire"
    assert "in handler" in stored.stacktrace[-1]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": True}, "concurrency"),
        ({"lease": 0}, "lease"),
        ({"timeout": -1}, "timeout"),
        ({"rate": 5}, "rate"),
        ({"executor": "fork"}, "executor"),
        ({"executor": "thread"}, "executor"),
        ({"shutdown_timeout": float("nan")}, "shutdown_timeout"),
    ],
)
def test_bad_worker_options_are_refused_with_their_field(options: dict[str, Any], field: str) -> None:
    async def handler(job: Any) -> None: ...

    with pytest.raises(InvalidOption) as refused:
        Worker("work", handler, "memory:", **options)
    assert refused.value.field == field
