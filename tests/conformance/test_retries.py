"""Failed runs: how often a job is tried, how long it waits between, and when it is given up."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from jobwire.backoff import Backoff
from jobwire.boundary import BACKOFFS, Failed, Feature
from jobwire.errors import Snooze, Unrecoverable
from jobwire.model import State

from .conftest import with_attempts

A_ROUND_TRIP = timedelta(milliseconds=50)
"""What the store's clock and the test's may differ by when they are compared."""


class Failing:
    """A handler that fails so many times before it succeeds."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.runs: list[float] = []
        self.attempts_made: list[int] = []

    async def __call__(self, job):
        self.runs.append(time.monotonic())
        self.attempts_made.append(job.attempts_made)
        if len(self.runs) <= self.times:
            raise RuntimeError(f"no luck in run {len(self.runs)}")
        return "at last"

    def waits(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.runs, self.runs[1:], strict=False)]


async def test_a_job_that_fails_without_attempts_left_has_failed(queue, work, finished):
    added = await queue.add(1)
    async with work(Failing(1)) as worker:
        job = await finished(queue, added.id)
    assert job.state is State.FAILED
    assert "no luck in run 1" in job.error
    assert job.attempts_made == 1
    assert job.finished_at is not None
    assert (worker.stats.failed, worker.stats.retried, worker.stats.completed) == (1, 0, 0)


async def test_a_failed_job_keeps_the_stack_of_its_failure(queue, work, finished):
    added = await queue.add(1)
    async with work(Failing(1)):
        job = await finished(queue, added.id)
    assert any("no luck in run 1" in stack for stack in job.stacktrace)


@with_attempts(3)
async def test_a_job_is_tried_as_often_as_it_may_be(queue, work, finished, tries):
    handler = Failing(99)
    added = await queue.add(1, **tries.job)
    async with work(handler, **tries.worker):
        job = await finished(queue, added.id)
    assert (job.state, job.attempts, job.attempts_made) == (State.FAILED, 3, 3)
    assert handler.attempts_made == [0, 1, 2]
    assert "no luck in run 3" in job.error


@with_attempts(3)
async def test_a_job_that_succeeds_at_last_has_completed(queue, work, finished, tries):
    added = await queue.add(1, **tries.job)
    async with work(Failing(2), **tries.worker) as worker:
        job = await finished(queue, added.id)
    assert (job.state, job.attempts_made) == (State.COMPLETED, 3)
    assert (worker.stats.retried, worker.stats.completed) == (2, 1)


async def test_the_number_of_attempts_is_the_jobs_own_or_refused(queue, needs):
    with needs(queue, Feature.ATTEMPTS):
        added = await queue.add(1, attempts=3)
        assert (await queue.get(added.id)).attempts == 3


async def test_no_run_begins_before_the_wait_of_its_backoff_is_over(queue, work, finished, needs):
    with needs(queue, Feature.ATTEMPTS, Feature.BACKOFF_FIXED):
        handler = Failing(2)
        added = await queue.add(1, attempts=3, backoff=Backoff.fixed(0.2))
        async with work(handler):
            await finished(queue, added.id)
        assert [wait >= 0.199 for wait in handler.waits()] == [True, True], handler.waits()


WAITS = {
    "fixed": (Backoff.fixed(100), [100, 100, 100, 100]),
    "linear": (Backoff.linear(100), [100, 200, 300, 400]),
    "exponential": (Backoff.exponential(100), [100, 200, 400, 800]),
}


@pytest.mark.parametrize("kind", WAITS)
async def test_each_kind_of_backoff_waits_by_its_own_formula(queue, consume, needs, kind):
    """Nothing waits here: the due time that was stored is read, and an operator makes the job ready before it."""
    rule, formula = WAITS[kind]
    with needs(queue, Feature.ATTEMPTS, BACKOFFS[kind]):
        added = await queue.add(1, attempts=9, backoff=rule)
        consumer = consume()
        for failure, wait in enumerate(formula, 1):
            [claim] = (await consumer.settle([], claim=1)).claims
            before = datetime.now(UTC)
            await consumer.settle([Failed(claim, f"failure {failure}")], claim=0)
            after = datetime.now(UTC)
            due = (await queue.get(added.id)).run_at
            # Some protocols stretch an exponential wait by chance, to twice its length at most.
            longest = 2 * wait if kind == "exponential" else wait
            assert due >= before + timedelta(seconds=wait) - A_ROUND_TRIP, f"failure {failure}"
            assert due <= after + timedelta(seconds=longest) + A_ROUND_TRIP, f"failure {failure}"
            await queue.admin.promote(added.id)


async def test_while_it_waits_for_its_next_run_a_job_is_delayed_and_shows_its_error(queue, work, eventually, needs):
    with needs(queue, Feature.ATTEMPTS, Feature.BACKOFF_FIXED):
        added = await queue.add(1, attempts=2, backoff=Backoff.fixed(3600))

        async def delayed():
            job = await queue.get(added.id)
            return job if job.state is State.DELAYED else None

        async with work(Failing(1)):
            job = await eventually(delayed)
        assert job.attempts_made == 1
        assert "no luck in run 1" in job.error


async def test_a_custom_backoff_is_computed_by_the_worker(queue, work, finished, needs):
    with needs(queue, Feature.ATTEMPTS, Feature.BACKOFF_CUSTOM):
        asked = []

        def strategy(failures, job, error):
            asked.append((failures, job.id))
            return 0.0

        added = await queue.add(1, attempts=3, backoff=Backoff.custom("patient"))
        async with work(Failing(2), backoff=strategy):
            job = await finished(queue, added.id)
        assert job.state is State.COMPLETED
        assert asked == [(1, added.id), (2, added.id)]


async def test_a_custom_backoff_may_give_the_job_up(queue, work, finished, needs):
    with needs(queue, Feature.ATTEMPTS, Feature.BACKOFF_CUSTOM):
        handler = Failing(99)
        added = await queue.add(1, attempts=5, backoff=Backoff.custom("impatient"))
        async with work(handler, backoff=lambda failures, job, error: 0.0 if failures < 2 else None):
            job = await finished(queue, added.id)
        assert (job.state, len(handler.runs)) == (State.FAILED, 2)


@with_attempts(5)
async def test_an_unrecoverable_error_fails_the_job_at_once(queue, work, finished, tries):
    runs = []

    async def handler(job):
        runs.append(job.id)
        raise Unrecoverable("the address does not exist")

    added = await queue.add(1, **tries.job)
    async with work(handler, **tries.worker):
        job = await finished(queue, added.id)
    assert job.state is State.FAILED
    assert "the address does not exist" in job.error
    assert len(runs) == 1


async def test_a_snoozed_job_runs_later_without_using_up_an_attempt(queue, work, finished):
    made = []

    async def handler(job):
        made.append(job.attempts_made)
        if len(made) == 1:
            raise Snooze(0.1)
        return "rested"

    added = await queue.add(1)
    async with work(handler) as worker:
        job = await finished(queue, added.id)
    assert (job.state, job.result) == (State.COMPLETED, "rested")
    assert made == [0, 0]
    assert worker.stats.snoozed == 1


async def test_a_result_that_is_no_json_fails_the_job(queue, work, finished):
    async def handler(job):
        return {1, 2, 3}

    added = await queue.add(1)
    async with work(handler):
        job = await finished(queue, added.id)
    assert job.state is State.FAILED
    assert "set" in job.error


async def never_ending(job):
    await asyncio.Event().wait()


async def test_a_handler_that_runs_longer_than_its_worker_allows_fails(queue, work, finished):
    added = await queue.add(1)
    async with work(never_ending, timeout=0.2):
        job = await finished(queue, added.id)
    assert job.state is State.FAILED
    assert "timeout of 0.2 s" in job.error


async def test_a_handler_that_runs_longer_than_its_job_allows_fails(queue, work, finished, needs):
    with needs(queue, Feature.TIMEOUTS):
        added = await queue.add(1, timeout=1)
        async with work(never_ending, timeout=60):
            job = await finished(queue, added.id)
        assert job.state is State.FAILED
        assert "timeout of 1 s" in job.error


@pytest.mark.parametrize("concurrency", [1, 2, 5])
async def test_a_job_that_is_due_again_runs_then_whatever_the_concurrency(queue, work, finished, needs, concurrency):
    with needs(queue, Feature.ATTEMPTS, Feature.BACKOFF_FIXED):
        handler = Failing(1)
        async with work(handler, concurrency=concurrency):
            added = await queue.add(1, attempts=2, backoff=Backoff.fixed(1))
            await finished(queue, added.id)
        [wait] = handler.waits()
        assert 0.99 <= wait < 3, "a worker that does not know the due time looks only every 5 s"
