"""Cancelling a job that runs: what each kind of handler sees, and what becomes of the job."""

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Connection, InvalidOption, Job, JobCancelled, Queue, Snooze, State, Worker
from jobwire.worker import processes, running
from worker import handlers


async def endless(job: Any) -> None:
    await job.update_progress("running")
    await asyncio.Event().wait()


async def begun(queue: Queue, job: Job) -> None:
    """Waits until the handler of the job runs."""

    async def look() -> bool:
        stored = await queue.get(job.id)
        return stored is not None and stored.progress == "running"

    await eventually(look, within=60)


async def failed(queue: Queue, job: Job) -> Job:
    """The job, once it has failed."""

    async def look() -> Job | None:
        stored = await queue.get(job.id)
        return stored if stored is not None and stored.state is State.FAILED else None

    return await eventually(look)


async def test_a_cancelled_job_fails_for_good_with_the_reason(queue: Queue, connection: Connection) -> None:
    async with Worker("work", endless, connection) as worker:
        job = await queue.add(1, attempts=5)
        await begun(queue, job)
        assert worker.cancel(job.id, "the customer left") is True
        stored = await failed(queue, job)
    assert (stored.error, stored.attempts_made) == ("cancelled: the customer left", 1)
    assert "in endless" in stored.stacktrace[-1]
    assert "JobCancelled" in stored.stacktrace[-1]
    assert (worker.stats.failed, worker.stats.retried) == (1, 0)


async def test_without_a_reason_the_failure_says_that_the_job_was_cancelled(
    queue: Queue, connection: Connection
) -> None:
    async with Worker("work", endless, connection) as worker:
        job = await queue.add(1)
        await begun(queue, job)
        worker.cancel(job.id)
        assert (await failed(queue, job)).error == "The job was cancelled while it ran."


async def test_with_retry_the_job_has_its_next_attempt(queue: Queue, connection: Connection) -> None:
    runs: list[int] = []

    async def handler(job: Any) -> str:
        runs.append(job.attempts_made)
        if len(runs) == 1:
            await asyncio.Event().wait()
        return "second time"

    async with Worker("work", handler, connection) as worker:
        job = await queue.add(1, attempts=2)
        await eventually(lambda: runs)
        assert worker.cancel(job.id, retry=True)
        assert await job.wait(10) == "second time"
    assert (runs, worker.stats.retried) == ([0, 1], 1)


async def test_with_retry_a_job_without_attempts_left_fails(queue: Queue, connection: Connection) -> None:
    async with Worker("work", endless, connection) as worker:
        job = await queue.add(1)
        await begun(queue, job)
        assert worker.cancel(job.id, "enough", retry=True)
        assert (await failed(queue, job)).error == "cancelled: enough"


@pytest.mark.parametrize("end", ["returns", "raises", "snoozes"])
async def test_what_a_cancelled_handler_does_itself_counts(queue: Queue, connection: Connection, end: str) -> None:
    async def handler(job: Any) -> str:
        if job.attempts_made or not started:
            started.append(job.id)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                assert job.cancelled
                if end == "raises":
                    raise ValueError("half done") from None
                if end == "snoozes":
                    raise Snooze(0.01) from None
                return "saved what there was"
        return "after its snooze"

    started: list[str] = []
    async with Worker("work", handler, connection) as worker:
        job = await queue.add(1, attempts=1)
        await eventually(lambda: started)
        assert worker.cancel(job.id, "not wanted")
        match end:
            case "returns":
                assert await job.wait(10) == "saved what there was"
            case "raises":
                assert (await failed(queue, job)).error == "half done"
            case _:
                assert await job.wait(10) == "after its snooze"


async def test_cancelling_what_this_worker_does_not_run_changes_nothing(queue: Queue, connection: Connection) -> None:
    done = asyncio.Event()

    async def handler(job: Any) -> str:
        await done.wait()
        return "done"

    worker = Worker("work", handler, connection)
    assert worker.cancel("1") is False
    async with worker:
        first, second = await queue.add(1), await queue.add(2)
        await eventually(lambda: worker.busy == 1)
        assert worker.cancel(second.id) is False
        assert worker.cancel("no such job") is False
        done.set()
        assert [await first.wait(10), await second.wait(10)] == ["done", "done"]
        assert worker.cancel(first.id) is False
    assert worker.cancel(first.id) is False


async def test_the_first_of_two_cancellations_decides_and_the_handler_cleans_up_in_peace(
    queue: Queue, connection: Connection
) -> None:
    cleaned, go = asyncio.Event(), asyncio.Event()

    async def handler(job: Any) -> None:
        await job.update_progress("running")
        try:
            await asyncio.Event().wait()
        finally:
            await go.wait()
            cleaned.set()

    async with Worker("work", handler, connection) as worker:
        job = await queue.add(1, attempts=3)
        await begun(queue, job)
        assert worker.cancel(job.id, "first")
        await asyncio.sleep(0)
        assert worker.cancel(job.id, "second", retry=True)
        await asyncio.sleep(0)
        go.set()
        stored = await failed(queue, job)
    assert (stored.error, cleaned.is_set(), worker.stats.retried) == ("cancelled: first", True, 0)


async def test_a_timeout_does_not_disturb_the_clean_up_of_a_cancelled_handler(
    queue: Queue, connection: Connection
) -> None:
    cleaned = asyncio.Event()

    async def handler(job: Any) -> None:
        await job.update_progress("running")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.3)
            cleaned.set()

    async with Worker("work", handler, connection, timeout=0.2) as worker:
        job = await queue.add(1)
        await begun(queue, job)
        assert worker.cancel(job.id, "early")
        assert (await failed(queue, job)).error == "cancelled: early"
    assert cleaned.is_set()


async def test_a_job_that_is_cancelled_before_its_handler_began_never_runs(
    queue: Queue, connection: Connection
) -> None:
    ran: list[str] = []

    async def handler(job: Any) -> None:
        ran.append(job.id)

    class Canceller:
        def started(self, claim: Any) -> None:
            assert worker.cancel(claim.job.id, "at once")

        def settled(self, outcome: Any, verdict: Any) -> None: ...

    worker = Worker("work", handler, connection, observers=[Canceller()])
    async with worker:
        job = await queue.add(1)
        assert (await failed(queue, job)).error == "cancelled: at once"
    assert ran == []


async def test_a_job_being_settled_is_not_cancelled(queue: Queue, connection: Connection) -> None:
    answers: list[bool] = []

    class Canceller:
        def started(self, claim: Any) -> None: ...

        def settled(self, outcome: Any, verdict: Any) -> None:
            answers.append(worker.cancel(outcome.claim.job.id))

    async def handler(job: Any) -> str:
        asyncio.get_running_loop().call_soon(lambda: answers.append(worker.cancel(job.id)))
        return "done"  # the run ends before the event loop comes to the call above

    worker = Worker("work", handler, connection, observers=[Canceller()])
    async with worker:
        assert await (await queue.add(1)).wait(10) == "done"
        await eventually(lambda: len(answers) == 2)
    assert answers == [False, False]


async def test_a_job_that_shutdown_hands_back_is_not_cancelled(queue: Queue, connection: Connection) -> None:
    answers: list[bool] = []

    async def handler(job: Any) -> None:
        await job.update_progress("running")
        try:
            await asyncio.Event().wait()
        finally:
            answers.append(worker.cancel(job.id, "too late"))

    worker = Worker("work", handler, connection)
    async with worker:
        job = await queue.add(1)
        await begun(queue, job)
        await worker.stop(now=True)
    stored = await queue.get(job.id)
    assert stored is not None
    assert (stored.state, stored.attempts_made, answers) == (State.WAITING, 0, [False])


async def test_a_cancelled_job_fails_although_shutdown_comes_before_its_handler_has_ended(
    queue: Queue, connection: Connection
) -> None:
    async def handler(job: Any) -> None:
        await job.update_progress("running")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.Event().wait()

    worker = Worker("work", handler, connection)
    async with worker:
        job = await queue.add(1)
        await begun(queue, job)
        assert worker.cancel(job.id, "first")
        await asyncio.sleep(0)
        await worker.stop(now=True)
    assert (await failed(queue, job)).error == "cancelled: first"


async def test_a_shutdown_is_no_timeout_though_one_comes_while_the_handler_cleans_up(
    queue: Queue, connection: Connection
) -> None:
    async def handler(job: Any) -> None:
        await job.update_progress("running")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.3)

    worker = Worker("work", handler, connection, timeout=0.2)
    async with worker:
        job = await queue.add(1)
        await begun(queue, job)
        await worker.stop(now=True)
    stored = await queue.get(job.id)
    assert stored is not None
    assert (stored.state, stored.attempts_made) == (State.WAITING, 0)


async def test_a_cancellation_from_within_is_the_handlers_own(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> None:
        inner = asyncio.create_task(asyncio.sleep(600))
        inner.cancel()
        await inner

    async with Worker("work", handler, connection):
        job = await queue.add(1)
        assert (await failed(queue, job)).error == "the handler was cancelled from within"


async def test_raising_job_cancelled_unasked_is_an_error_like_any_other(queue: Queue, connection: Connection) -> None:
    async def handler(job: Any) -> str:
        if job.attempts_made == 0:
            raise JobCancelled("by myself")
        return "second time"

    async with Worker("work", handler, connection):
        assert await (await queue.add(1, attempts=2)).wait(10) == "second time"


async def test_a_handler_that_swallows_its_cancellation_is_abandoned(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_CLEAN_UP", 0.1)
    go = asyncio.Event()

    async def stubborn(job: Any) -> str:
        await job.update_progress("running")
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    async with Worker("work", stubborn, connection) as worker:
        job = await queue.add(1)
        await begun(queue, job)
        assert worker.cancel(job.id, "stop it")
        assert (await failed(queue, job)).error == "cancelled: stop it"
        assert worker.busy == 0
        go.set()
    assert f"abandoned the handler of job {job.id}" in caplog.text


# --- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["raises JobCancelled", "raises CancelledError", "raises", "returns"])
async def test_a_thread_looks_and_decides(queue: Queue, connection: Connection, end: str) -> None:
    began, asked = threading.Event(), threading.Event()

    def handler(job: Any) -> str:
        assert not job.cancelled
        began.set()
        assert asked.wait(20)
        assert job.cancelled
        match end:
            case "raises JobCancelled":
                raise JobCancelled
            case "raises CancelledError":
                raise asyncio.CancelledError
            case "raises":
                raise ValueError("half done")
            case _:
                return "all done"

    async with Worker("work", handler, connection) as worker:
        job = await queue.add(1, attempts=1)
        await eventually(began.is_set)
        assert worker.cancel(job.id, "not wanted") is True
        assert worker.cancel(job.id, "not wanted") is True
        assert worker.busy == 1, "a thread keeps its slot until it returns"
        asked.set()
        match end:
            case "returns":
                assert await job.wait(10) == "all done"
            case "raises":
                assert (await failed(queue, job)).error == "half done"
            case _:
                assert (await failed(queue, job)).error == "cancelled: not wanted"


async def test_a_cancelled_thread_is_abandoned_at_its_timeout(
    queue: Queue, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    began, release, seen = threading.Event(), threading.Event(), threading.Event()

    def handler(job: Any) -> None:
        began.set()
        release.wait(60)
        if job.cancelled:
            seen.set()

    with caplog.at_level(logging.WARNING, "jobwire.worker"):
        async with Worker("work", handler, connection, timeout=0.5) as worker:
            job = await queue.add(1, attempts=3)
            await eventually(began.is_set)
            assert worker.cancel(job.id, "not wanted")
            assert (await failed(queue, job)).error == "cancelled: not wanted"
    release.set()
    await eventually(seen.is_set)
    assert "abandoned thread" in caplog.text


async def test_a_thread_sees_its_timeout_as_cancelled(queue: Queue, connection: Connection) -> None:
    seen = threading.Event()

    def handler(job: Any) -> None:
        while not job.cancelled:
            seen.wait(0.005)
        seen.set()

    async with Worker("work", handler, connection, timeout=0.1):
        job = await queue.add(1)
        assert "longer than its timeout" in str((await failed(queue, job)).error)
        await eventually(seen.is_set)


# --- processes ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_the_process_of_a_cancelled_job_is_killed_and_the_next_job_has_another(
    queue: Queue, connection: Connection, tmp_path: Path
) -> None:
    async with Worker("work", handlers.until_there, connection, executor="process") as worker:
        job = await queue.add(str(tmp_path / "never"), attempts=3)
        await begun(queue, job)
        assert worker.cancel(job.id, "not wanted")
        stored = await failed(queue, job)
        assert stored.error == "cancelled: not wanted"
        assert await (await queue.add(str(tmp_path))).wait(60) == "found, cancelled: False"
        assert (worker.stats.failed, worker.stats.completed, worker.stats.retried) == (1, 1, 0)


@pytest.mark.slow
async def test_a_job_is_cancelled_while_its_process_starts(
    queue: Queue, connection: Connection, tmp_path: Path
) -> None:
    async with Worker("work", handlers.until_there, connection, executor="process") as worker:
        job = await queue.add(str(tmp_path / "never"))
        await eventually(lambda: worker.busy == 1)
        assert worker.cancel(job.id, "at once")
        stored = await failed(queue, job)
        assert (stored.error, stored.progress) == ("cancelled: at once", None)
        assert await (await queue.add(str(tmp_path))).wait(60) == "found, cancelled: False"


@pytest.mark.slow
async def test_a_job_that_is_cancelled_before_its_thread_begins_shares_its_process_with_no_other(
    queue: Queue, connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, asked, may_begin = processes._Child.run, threading.Event(), threading.Event()

    def run_late(child: Any, job: Any, on_begun: Any) -> Any:
        if job.data == "first":
            asked.set()
            may_begin.wait()
        return run(child, job, on_begun)

    monkeypatch.setattr(processes._Child, "run", run_late)
    async with Worker("work", handlers.until_there, connection, executor="process") as worker:
        first = await queue.add("first")
        await eventually(asked.is_set)
        assert worker.cancel(first.id)
        await failed(queue, first)
        second = await queue.add(str(tmp_path / "later"))
        await begun(queue, second)
        may_begin.set()
        (tmp_path / "later").touch()
        assert await second.wait(60) == "found, cancelled: False"


# --- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"job_id": 7}, "job_id"),
        ({"job_id": ""}, "job_id"),
        ({"job_id": "7", "reason": None}, "reason"),
        ({"job_id": "7", "reason": "\ud800"}, "reason"),
        ({"job_id": "7", "retry": 1}, "retry"),
    ],
    ids=["a number", "empty", "no reason", "half a character", "retry"],
)
async def test_bad_arguments_are_refused(connection: Connection, arguments: dict[str, Any], field: str) -> None:
    worker = Worker("work", endless, connection)
    with pytest.raises(InvalidOption) as refused:
        worker.cancel(**arguments)
    assert refused.value.field == field


def test_the_error_keeps_its_reason_when_it_is_pickled() -> None:
    again = pickle.loads(pickle.dumps(JobCancelled("why")))
    assert (again.reason, str(again)) == ("why", "cancelled: why")
