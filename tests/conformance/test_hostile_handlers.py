"""Whatever a handler does, its worker goes on, its job ends, the jobs beside it are untouched, and the log names it."""

from __future__ import annotations

import asyncio
import logging
import math
from datetime import timedelta

import pytest

from conformance.hostile import ACTS, act, act_async
from jobwire import Backoff, NewJob
from jobwire.boundary import Feature
from jobwire.model import State

HANDLERS = {"async": act_async, "thread": act, "process": act}
ODD_ANSWERS = {
    "text": "5",
    "nan": math.nan,
    "list": [],
    "true": True,
    "object": object(),
    "negative": -1,
}
GOOD_ANSWERS = {"number": 0.01, "delta": timedelta(milliseconds=10), "infinite": math.inf}


@pytest.mark.slow
@pytest.mark.parametrize("executor", HANDLERS)
async def test_no_handler_can_stop_a_worker_or_touch_the_jobs_beside_it(queue, work, finished, caplog, executor):
    acts = [kind for act in ACTS for kind in (act, "good")]
    with caplog.at_level(logging.ERROR, "jobwire.worker"):
        async with work(HANDLERS[executor], executor=executor, concurrency=3, lease=60) as worker:
            added = await queue.add_many([NewJob(act) for act in acts])
            ended = [await finished(queue, job.id) for job in added]
            assert (worker.busy, worker.running, worker.connected) == (0, True, True)
    states = {job.data: job.state for job in ended}
    assert states == {**dict.fromkeys(ACTS, State.FAILED), "good": State.COMPLETED}
    assert [job.data for job in ended if job.state is State.FAILED and not job.error] == []
    assert (worker.stats.completed, worker.stats.failed, worker.stats.lost) == (len(ACTS), len(ACTS), 0)
    logged = {record.job for record in caplog.records if "failed in attempt" in record.getMessage()}
    assert logged == {job.id for job in ended if job.state is State.FAILED}


async def test_no_answer_of_a_backoff_strategy_can_stop_a_worker(queue, work, finished, needs):
    def raising(failures, job, error):
        raise SystemExit("no more")

    def late(failures, job, error):
        return asyncio.sleep(0)

    def fail(job):
        raise ValueError("boom")

    answers = {name: lambda failures, job, error, value=value: value for name, value in ODD_ANSWERS.items()}
    with needs(queue, Feature.ATTEMPTS, Feature.BACKOFF_CUSTOM):
        strategies = {**answers, "raises": raising, "coroutine": late}
        added = [await queue.add(name, attempts=3, backoff=Backoff.custom(name)) for name in strategies]
        async with work(fail, backoff=strategies, concurrency=4):
            ended = [await finished(queue, job.id) for job in added]
        assert [(job.state, job.attempts_made) for job in ended] == [(State.FAILED, 1)] * len(ended)
        reasons = {job.data: job.error for job in ended}
        assert "the backoff strategy returned '5'" in reasons["text"]
        assert "the backoff strategy raised SystemExit" in reasons["raises"]
        assert all("not retried" in reason for name, reason in reasons.items() if name != "negative"), reasons


async def test_a_backoff_strategy_answers_with_a_number_or_a_timedelta(queue, work, finished, needs):
    def fail(job):
        raise ValueError("boom")

    with needs(queue, Feature.ATTEMPTS, Feature.BACKOFF_CUSTOM):
        strategies = {name: lambda failures, job, error, value=value: value for name, value in GOOD_ANSWERS.items()}
        added = [await queue.add(name, attempts=3, backoff=Backoff.custom(name)) for name in strategies]
        async with work(fail, backoff=strategies, max_backoff=0.05, concurrency=4):
            ended = [await finished(queue, job.id) for job in added]
        assert [(job.state, job.attempts_made) for job in ended] == [(State.FAILED, 3)] * len(ended)
