"""Next attempts follow the instance's settings in Monque: the number of runs, and a strategy in place of its waits."""

from __future__ import annotations

from datetime import timedelta

import pytest
from bson import ObjectId

from jobwire.boundary import Failed, Verdict


async def _fail(consumer, reason):
    [claim] = (await consumer.settle([], claim=1)).claims
    [verdict] = (await consumer.settle([Failed(claim, reason)], claim=0)).verdicts
    return verdict


async def test_the_workers_strategy_takes_the_place_of_the_peers_wait(queue, consume, jobs):
    asked = []

    def strategy(failures, job, error):
        asked.append((failures, job.id, error))
        return 100.0 * failures

    added = await queue.add(1)
    consumer = consume(strategy=strategy)
    for n in (1, 2, 3):
        assert await _fail(consumer, f"no luck {n}") is Verdict.RETRIED
        stored = jobs.find_one({"_id": ObjectId(added.id)})
        assert stored["nextRunAt"] - stored["updatedAt"] == timedelta(seconds=100 * n)
        await queue.admin.promote(added.id)
    assert asked == [(n, added.id, f"no luck {n}") for n in (1, 2, 3)]


@pytest.mark.parametrize("answer", [None, -1.0])
async def test_a_strategy_may_end_the_job_before_its_last_attempt(queue, consume, jobs, answer):
    added = await queue.add(1)
    consumer = consume(strategy=lambda failures, job, error: 0.0 if failures < 2 else answer)
    assert [await _fail(consumer, "no"), await _fail(consumer, "no")] == [Verdict.RETRIED, Verdict.FAILED]
    stored = jobs.find_one({"_id": ObjectId(added.id)})
    assert (stored["status"], stored["failCount"]) == ("failed", 2)
