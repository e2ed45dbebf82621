"""Handlers, observers and loggers that misbehave: the worker lives, other jobs are untouched, the log says what was."""

from __future__ import annotations

import asyncio
import logging
import os
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.transport import Transport

from awaiting import eventually
from jobwire import Connection, InvalidOption, JobFailed, Queue, Snooze, State, Unrecoverable, Worker
from jobwire.errors import RateLimited
from jobwire.worker import loop_watch, running
from worker import handlers


class Observer:
    """Raises in one of its methods."""

    def __init__(self, method: str, error: BaseException) -> None:
        self._method = method
        self._error = error
        self.calls = 0

    def started(self, claim: Any) -> None:
        self._be("started")

    def settled(self, outcome: Any, verdict: Any) -> None:
        self._be("settled")

    def _be(self, method: str) -> None:
        self.calls += 1
        if method == self._method:
            raise self._error


@pytest.mark.parametrize("method", ["started", "settled"])
@pytest.mark.parametrize("error", [RuntimeError("observer broke"), KeyboardInterrupt(), SystemExit(1)])
async def test_an_observer_that_raises_is_reported_once_and_stops_nothing(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture, method: str, error: BaseException
) -> None:
    async def handler(job: Any) -> Any:
        return job.data

    broken, sound = Observer(method, error), Observer("none", error)
    async with Worker("work", handler, connection, observers=[broken, sound]) as worker:
        for n in range(5):
            assert await (await queue.add(n)).wait(10) == n
        await eventually(lambda: worker.stats.completed == 5)
    assert broken.calls == sound.calls == 10
    [report] = [record for record in caplog.records if "observer" in record.getMessage()]
    assert f"observer Observer raised in {method}()" in report.getMessage()
    assert report.exc_info is not None
    assert report.exc_info[1] is error


async def test_a_logging_handler_that_raises_stops_nothing(
    queue: Queue, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError("log server is gone")

    async def handler(job: Any) -> str:
        if job.data == "bad":
            raise ValueError("no")
        return "fine"

    logger, broken = logging.getLogger("jobwire"), Broken()
    logger.addHandler(broken)
    try:
        async with Worker("work", handler, connection):
            with pytest.raises(JobFailed):
                await (await queue.add("bad")).wait(10)
            assert await (await queue.add("good")).wait(10) == "fine"
    finally:
        logger.removeHandler(broken)
    assert "log server is gone" in capsys.readouterr().err


async def test_a_failed_run_is_logged_with_its_traceback_and_its_fields(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(job: Any) -> None:
        raise ValueError("bad address") if job.data == "once" else Unrecoverable("never")

    async with Worker("work", handler, connection, worker_id="w-1"):
        once, never = await queue.add("once", name="welcome", attempts=2), await queue.add("never")
        for job in (once, never):
            with pytest.raises(JobFailed):
                await job.wait(10)
    found = [record for record in caplog.records if "failed in attempt" in record.getMessage()]
    fields = ("levelname", "worker", "queue", "job", "job_name", "attempt", "category", "error")
    shown = sorted([tuple(vars(record)[field] for field in fields) for record in found])
    assert shown == [
        ("ERROR", "w-1", "work", once.id, "welcome", 1, "transient", "ValueError"),
        ("ERROR", "w-1", "work", once.id, "welcome", 2, "transient", "ValueError"),
        ("ERROR", "w-1", "work", never.id, "work", 1, "permanent", "Unrecoverable"),
    ]
    assert f"[w-1] job {once.id} (welcome) failed in attempt 1: ValueError: bad address" in caplog.text
    assert 'raise ValueError("bad address")' in caplog.text


@pytest.fixture
def sentry_events() -> Iterator[list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []

    class Kept(Transport):
        def capture_envelope(self, envelope: Any) -> None:
            if (event := envelope.get_event()) is not None:
                events.append(event)

    sentry_sdk.init(
        dsn="http://key@127.0.0.1:9/1", transport=Kept, default_integrations=True, auto_enabling_integrations=False
    )
    yield events
    sentry_sdk.get_client().close(timeout=1)
    sentry_sdk.init()


async def test_sentry_sees_a_failed_run(
    queue: Queue, connection: Connection, sentry_events: list[dict[str, Any]]
) -> None:
    async def handler(job: Any) -> None:
        raise LookupError("no such customer")

    async with Worker("work", handler, connection):
        job = await queue.add(1)
        with pytest.raises(JobFailed):
            await job.wait(10)
    [event] = sentry_events
    [error] = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("LookupError", "no such customer")
    assert error["stacktrace"]["frames"][-1]["function"] == "handler"
    assert event["extra"]["job"] == job.id


async def test_sentry_sees_the_error_of_a_child_process_by_its_own_name(
    queue: Queue, connection: Connection, sentry_events: list[dict[str, Any]]
) -> None:
    async with Worker("work", handlers.misbehave, connection, executor="process"):
        with pytest.raises(JobFailed):
            await (await queue.add("raise")).wait(30)
    [event] = sentry_events
    cause, error = event["exception"]["values"]
    assert (error["type"], error["value"]) == ("ValueError", "bad input")
    assert "in misbehave" in cause["value"]


async def test_a_blocked_event_loop_is_reported_with_the_handler_that_blocks_it(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def hog(job: Any) -> None:
        time.sleep(3)

    async with Worker("work", hog, connection, call_timeout=1):
        job = await queue.add(1)
        await job.wait(20)
        await eventually(lambda: "the event loop is free again" in caplog.text)
    [report] = [record.getMessage() for record in caplog.records if "has been blocked" in record.getMessage()]
    assert f"by the handler of job {job.id}, at hog (" in report
    assert __file__ in report
    assert "store failed" not in caplog.text
    assert loop_watch.__file__ not in report


async def test_a_call_that_a_blocked_loop_delays_is_not_an_outage(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def hog(job: Any) -> None:
        time.sleep(1.5)  # longer than a call may take

    async with Worker("work", hog, connection, concurrency=4, call_timeout=0.5) as worker:
        jobs = [await queue.add(n) for n in range(4)]
        for job in jobs:
            await job.wait(30)
    assert (worker.stats.reconnects, worker.stats.completed) == (0, 4), caplog.text


@pytest.mark.parametrize("kind", ["timeout", "lost"])
async def test_a_handler_that_ignores_cancellation_is_abandoned_and_its_slot_is_free_again(
    queue: Queue,
    connection: Connection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setattr(running, "_CLEAN_UP", 0.2)
    go, seen = asyncio.Event(), asyncio.Event()

    async def stubborn(job: Any) -> str:
        seen.set()
        while job.data == "stubborn" and not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        return "done"

    limits = {"timeout": 1.0} if kind == "timeout" else {"lease": 0.4}
    async with Worker("work", stubborn, connection, **limits) as worker:  # type: ignore[arg-type]
        job = await queue.add("stubborn")
        await seen.wait()
        if kind == "lost":
            await queue.admin.obliterate(force=True)
        await eventually(lambda: worker.busy == 0)
        assert await (await queue.add("good")).wait(10) == "done"
        if kind == "timeout":
            with pytest.raises(JobFailed, match=r"longer than its timeout of 1 s"):
                await job.wait(10)
        else:
            await eventually(lambda: worker.stats.lost == 1)
        go.set()
        await asyncio.sleep(0)
        assert worker.stats.completed == 1
    assert f"abandoned the handler of job {job.id}" in caplog.text


@pytest.mark.parametrize("kind", [Snooze, RateLimited])
async def test_a_delay_may_be_a_timedelta(queue: Queue, connection: Connection, kind: Any) -> None:
    runs: list[float] = []

    async def handler(job: Any) -> str:
        runs.append(time.monotonic())
        if len(runs) == 1:
            raise kind(timedelta(milliseconds=200))
        return "done"

    async with Worker("work", handler, connection):
        assert await (await queue.add(1)).wait(10) == "done"
    assert runs[1] - runs[0] >= 0.19


@pytest.mark.parametrize("bad", [None, "5", float("nan"), float("inf"), -1, True], ids=repr)
@pytest.mark.parametrize("kind", [Snooze, RateLimited])
async def test_a_delay_that_is_none_fails_the_run_with_the_value(
    queue: Queue, connection: Connection, kind: Any, bad: Any
) -> None:
    async def handler(job: Any) -> str:
        if job.data == "bad":
            raise kind(bad)
        return "fine"

    async with Worker("work", handler, connection):
        job = await queue.add("bad")
        with pytest.raises(JobFailed, match=rf"{kind.__name__}\.delay: must be .* \(got {bad!r}\)"):
            await job.wait(10)
        assert await (await queue.add("good")).wait(10) == "fine"
    stored = await queue.get(job.id)
    assert stored is not None
    assert stored.state is State.FAILED


def fork_and_return(job: Any) -> str:
    if job.data == "good":
        return "fine"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of forks in a process with threads
        copy = os.fork()
    if copy == 0:
        return "from the copy"
    return f"copy ended with {os.waitpid(copy, 0)[1]}"


async def fork_and_return_in_the_loop(job: Any) -> str:
    return fork_and_return(job)


@pytest.mark.parametrize("handler", [fork_and_return, fork_and_return_in_the_loop])
async def test_the_copy_of_a_handler_that_forks_ends_when_it_returns(
    queue: Queue, connection: Connection, handler: Any
) -> None:
    async with Worker("work", handler, connection) as worker:
        assert await (await queue.add("fork")).wait(10) == "copy ended with 0"
        assert await (await queue.add("good")).wait(10) == "fine"
    assert worker.stats.completed == 2


ODD_TEXTS: dict[str, Callable[[Queue, str], Awaitable[Any]]] = {
    "log": lambda queue, job: queue.admin.log(job, "a\ud800"),
    "field of an event": lambda queue, job: queue.admin.publish("event", {"field": "\ud800"}),
    "name of a field": lambda queue, job: queue.admin.publish("event", {"\ud800": "value"}),
}


@pytest.mark.parametrize("where", ODD_TEXTS)
async def test_a_text_that_is_not_unicode_is_refused_before_the_store_sees_it(queue: Queue, where: str) -> None:
    job = await queue.add(1)
    with pytest.raises(InvalidOption, match="must be valid Unicode"):
        await ODD_TEXTS[where](queue, job.id)


async def test_a_line_of_a_handler_that_is_not_unicode_fails_its_run(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None:
        await job.log("a\ud800")

    async with Worker("work", handler, connection):
        with pytest.raises(JobFailed, match="line: must be valid Unicode"):
            await (await queue.add(1)).wait(5)


class Lying(Exception):
    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no class")


@pytest.mark.parametrize(("kind", "value"), [(Snooze, "5"), (Snooze, None), (Snooze, float("nan")), (Lying, "a lie")])
async def test_a_block_of_a_claim_by_hand_that_asks_for_no_duration_fails_its_job(
    queue: Queue, kind: Any, value: Any
) -> None:
    job = await queue.add(1)
    claimed = await queue.claim()
    assert claimed is not None
    with pytest.raises(kind):
        async with claimed:
            raise kind(value)
    stored = await queue.get(job.id)
    assert stored is not None
    assert (stored.state, claimed.settled) == (State.FAILED, True)
    assert "Snooze.delay: must be" in (stored.error or "") or "a lie" in (stored.error or "")
