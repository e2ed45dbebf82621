"""Chains on pg-boss: later steps begin at once, and do not wait for ever for a first one that will not complete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from jobwire import App, Connection, JobFailed, Rate, State, Worker, chain, chord, current_job
from jobwire.backends.pgboss import Boss, GraphJob
from jobwire.backends.pgboss.work.dependents import Dependents
from jobwire.native import PgBossWorker

NO_PASSES = PgBossWorker(flow_interval=3600, monitor_interval=3600)
"""A worker that makes waiting jobs ready only as it settles the first ones."""
PASSES = PgBossWorker(flow_interval=3600, monitor_interval=0.1)
Read = Callable[..., Awaitable[list[dict[str, Any]]]]


@pytest.fixture
async def app(connection: Connection) -> AsyncIterator[App]:
    async with App(connection) as app:
        yield app


class Steps:
    def __init__(self, app: App, **options: Any) -> None:
        self.fail = False

        @app.task(attempts=1, **options)
        async def first(number: int) -> int:
            if self.fail:
                raise ValueError("no luck")
            return number + 1

        @app.task
        async def second(number: int) -> int:
            return number * 2

        @app.task
        async def third(number: int) -> str:
            return f"number {number}"

        @app.task
        async def total(numbers: list[int]) -> int:
            return sum(numbers)

        self.first, self.second, self.third, self.total = first, second, third, total


async def test_the_next_step_does_not_wait_for_a_pass(app: App) -> None:
    steps = Steps(app)
    async with app.worker(native=NO_PASSES):
        job = await chain(steps.first.s(1), steps.second.s(), steps.third.s()).add()
        assert await job.wait(30) == "number 4"


async def test_the_next_step_of_a_limited_task_does_not_wait_either(app: App) -> None:
    steps = Steps(app, rate=Rate(100, per=1))
    async with app.worker(native=NO_PASSES):
        job = await chain(steps.first.s(1), steps.second.s()).add()
        assert await job.wait(30) == 4
        steps.fail = True
        job = await chain(steps.first.s(1), steps.second.s()).add()
        with pytest.raises(JobFailed, match="of queue first, whose result it needs, failed: no luck"):
            await job.wait(30)


async def test_a_step_may_complete_in_its_own_transaction(app: App, rows: Read) -> None:
    @app.task
    async def write(number: int) -> int:
        connection = await current_job().transaction()
        await connection.execute("CREATE TABLE IF NOT EXISTS written (number integer)")
        await connection.execute("INSERT INTO written VALUES (%s)", [number])
        return number

    steps = Steps(app)
    async with app.worker(native=NO_PASSES):
        job = await chain(write.s(3), steps.second.s()).add()
        assert await job.wait(30) == 6


async def test_a_failure_is_passed_on_with_its_reason_at_once(app: App, rows: Read) -> None:
    steps = Steps(app)
    steps.fail = True
    async with app.worker(native=NO_PASSES):
        job = await chain(steps.first.s(1), steps.second.s(), steps.third.s()).add()
        with pytest.raises(JobFailed, match=r"of queue second, .* failed: job .* of queue first, .* failed: no luck"):
            await job.wait(30)
    states = await rows("SELECT name, state::text FROM job ORDER BY name")
    assert [tuple(row.values()) for row in states] == [("first", "failed"), ("second", "failed"), ("third", "failed")]


@pytest.mark.parametrize("how", ["cancelled", "deleted"])
async def test_a_first_step_that_is_cancelled_or_deleted_fails_the_next_ones(app: App, how: str) -> None:
    steps = Steps(app)
    job = await chain(steps.first.s(1), steps.second.s(), steps.third.s()).add()
    [first] = await app.queue("first").jobs()
    if how == "cancelled":
        await app.queue("first").cancel(first.id)
    else:
        await app.queue("first").admin.remove(first.id)
    async with app.worker(native=PASSES):
        with pytest.raises(JobFailed, match="of queue second, whose result it needs, failed"):
            await job.wait(30)
    [second] = await app.queue("second").jobs(State.FAILED)
    assert ("was cancelled" if how == "cancelled" else "no longer in the store") in str(second.error)


async def test_an_operator_retries_the_steps_that_failed(app: App) -> None:
    steps = Steps(app)
    steps.fail = True
    async with app.worker(native=NO_PASSES):
        job = await chain(steps.first.s(1), steps.second.s()).add()
        with pytest.raises(JobFailed):
            await job.wait(30)
        steps.fail = False
        [first] = await app.queue("first").jobs(State.FAILED)
        await app.queue("first").admin.retry(first.id)
        assert await steps.first.wait(first.id, 30) == 2
        await app.queue("second").admin.retry(job.id)
        assert await job.wait(30) == 4


async def test_a_chord_waits_until_the_last_member_has_completed(app: App, rows: Read) -> None:
    steps = Steps(app)
    job = await chord([steps.first.s(1), steps.second.s(5)], steps.total.s()).add()
    async with app.worker(["second"], native=PASSES):
        [other] = await app.queue("second").jobs()
        assert await steps.second.wait(other.id, 30) == 10
    assert (await steps.total.get(job.id)).state is State.WAITING_CHILDREN
    async with app.worker(native=PASSES):
        assert await job.wait(30) == 12


async def test_a_flow_of_pg_boss_itself_goes_on_waiting_after_a_failure(
    connection: Connection, app: App, boss: Boss, work: Callable[..., Worker]
) -> None:
    async def bad(job: Any) -> None:
        raise ValueError("no luck")

    letters = await app.queue("letters").open()
    graph = [GraphJob("a", "letters", {}, {"retryLimit": 0}), GraphJob("b", "letters", {}, depends_on=["a"])]
    ids = await boss.flow(graph)
    async with work(bad, native=PASSES):
        with pytest.raises(JobFailed):
            await letters.wait(ids["a"], 30)
    backend: Any = connection.backend
    assert await Dependents(backend.store, backend.queues).fail_doomed("letters") == 0
    found = await letters.get(ids["b"])
    assert found is not None
    assert found.state is State.WAITING_CHILDREN
