"""`perform` runs one task here, as a worker runs it."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import threading
import uuid
from typing import Any

import pytest

from jobwire import (
    App,
    Depends,
    HandlerTimeout,
    InvalidOption,
    Rate,
    RateLimited,
    Snooze,
    context_of,
    current_job,
    sync,
)
from jobwire.tasks import Adding, CallNext, InvalidResult
from jobwire.testing import perform, perform_sync
from tasks.shapes import Line, Order, Plan
from tasks.tested_app import (
    NOWHERE,
    Pool,
    count_lines,
    fail,
    fake_pool,
    process_id,
    seen,
    ship,
    tenant,
)

pytestmark = pytest.mark.usefixtures("nothing_seen")


async def test_a_task_is_performed_with_its_types():
    number, day = uuid.uuid4(), dt.date(2026, 11, 16)
    assert await perform(ship, Order(7, [Line("a", 2)]), on=day, number=number) == [Line("a", 2), Line("box")]
    assert seen == [(7, day, Plan.FREE, number)]


def test_a_plain_test_function_performs_tasks_too():
    assert perform_sync(count_lines, Order(1, [Line("a")])) == 1
    with pytest.raises(LookupError, match="here"):
        perform_sync(fail, "here")


async def test_the_blocking_form_works_inside_of_an_event_loop():
    assert perform_sync(count_lines, order=Order(1)) == 0


async def test_arguments_are_refused_as_by_add():
    with pytest.raises(InvalidOption, match="on: must be date, not int"):
        await perform(ship, Order(1), on=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidOption, match="did you mean order"):
        await perform(count_lines, odrer=Order(1))  # type: ignore[call-arg]
    assert seen == []


async def test_a_result_of_another_type_is_refused_as_by_a_worker():
    own = App("memory:")

    @own.task
    async def total() -> int:
        return "7"  # type: ignore[return-value]

    with pytest.raises(InvalidResult, match="must be int, not str"):
        await perform(total)


async def test_the_tasks_own_exception_is_raised():
    error = Snooze(30, "later")
    own = App("memory:")

    @own.task
    async def put_off() -> None:
        raise error

    with pytest.raises(LookupError, match="nothing"):
        await perform(fail, text="nothing")
    with pytest.raises(Snooze) as raised:
        await perform(put_off)
    assert raised.value is error


async def test_an_exception_that_would_end_the_event_loop_is_wrapped():
    own = App("memory:")

    @own.task
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match=r"sys\.exit\(3\)") as raised:
        await perform(leave)
    assert isinstance(raised.value.__cause__, SystemExit)


async def test_the_timeout_of_a_task_holds():
    own = App("memory:")

    @own.task(timeout=0.05)
    async def sleep() -> None:
        await asyncio.sleep(60)

    with pytest.raises(HandlerTimeout, match=r"0\.05 s"):
        await perform(sleep)


async def test_a_task_sees_its_job():
    own = App("memory:")

    @own.task(attempts=4)
    async def look() -> list[Any]:
        job = current_job()
        await job.update_progress(50)
        await job.log("half way")
        return [job.id, job.name, job.queue, job.attempts, job.attempts_made, dict(context_of(job))]

    assert await perform(look) == ["1", "look", "look", 4, 0, {}]
    assert await perform(look.s(), job_id="w-17", attempts_made=2, context={"tenant": "acme"}) == [
        "w-17",
        "look",
        "look",
        4,
        2,
        {"tenant": "acme"},
    ]


async def test_options_of_perform_are_checked():
    with pytest.raises(InvalidOption, match="did you mean job_id"):
        await perform(count_lines.s(Order(1)), jobid="7")  # type: ignore[call-overload]
    with pytest.raises(InvalidOption, match="attempts_made: must be at least 0"):
        await perform(count_lines.s(Order(1)), attempts_made=-1)
    with pytest.raises(InvalidOption, match="must be a task"):
        await perform(len)  # type: ignore[arg-type]


class Tenant:
    def adding(self, new: Adding) -> None:
        new.context["tenant"] = tenant.get()

    async def running(self, job: Any, call_next: CallNext) -> Any:
        seen.append(("begins", context_of(job)["tenant"]))
        try:
            return await call_next(job)
        finally:
            seen.append("ends")


def _tenants() -> App:
    own = App("memory:", middleware=[Tenant()])

    @own.task
    async def speak(word: str) -> str:
        seen.append(word)
        return word

    return own


async def test_both_sides_of_middleware_run():
    tenant.set("acme")
    assert await perform(_tenants().tasks["speak"], word="hello") == "hello"
    assert seen == [("begins", "acme"), "hello", "ends"]


def test_both_sides_of_middleware_run_in_the_blocking_form():
    token = tenant.set("acme")
    try:
        assert perform_sync(_tenants().tasks["speak"], word="hello") == "hello"
    finally:
        tenant.reset(token)
    assert seen == [("begins", "acme"), "hello", "ends"]


async def test_a_plain_function_runs_in_a_thread_with_a_blocking_job():
    own = App("memory:")

    @own.task
    def thread() -> bool:
        sync.current_job().log("begins")
        return threading.current_thread() is threading.main_thread()

    assert await perform(thread) is False


async def test_a_task_for_child_processes_is_performed_in_this_one():
    assert await perform(process_id) == os.getpid()


async def test_dependencies_are_provided_and_cleaned_up():
    own = App("memory:")

    @own.task
    async def both(pool: Pool = Depends(fake_pool), shared: Pool = Depends(fake_pool, scope="process")) -> str:
        seen.append("runs")
        return pool.name + shared.name

    assert await perform(both) == "fakefake"
    assert seen == ["opened", "opened", "runs", "closed", "closed"]


async def test_a_rate_limit_is_raised_as_the_task_raised_it():
    own = App(NOWHERE)

    @own.task(rate=Rate(10, per=1))
    async def limited() -> None:
        raise RateLimited(3)

    with pytest.raises(RateLimited):
        await perform(limited)
