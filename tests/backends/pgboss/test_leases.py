"""A lease is pg-boss's heartbeat: set at the claim, kept, taken off at the end."""

from __future__ import annotations

import asyncio

import pytest

from awaiting import eventually
from jobwire import Queue, State, Worker
from jobwire.backends.pgboss import Boss
from jobwire.boundary import Completed, Failed, Released, Snoozed, Verdict
from jobwire.native import PgBossWorker

LOOK = "SELECT heartbeat_seconds, heartbeat_on IS NOT NULL AS beats, state FROM job WHERE id = %s"


async def claim_of(consumer):
    [claim] = (await consumer.settle([], claim=1)).claims
    return claim


@pytest.mark.parametrize(
    "end", [lambda c: Completed(c, b"1"), lambda c: Failed(c, "no", final=True), Released, lambda c: Snoozed(c, 60)]
)
async def test_the_lease_stands_in_for_a_heartbeat_while_the_job_runs(queue, consume, rows, end):
    added = await queue.add(1)
    consumer = consume(lease=30)
    claim = await claim_of(consumer)
    assert (await rows(LOOK, added.id))[0] == {"heartbeat_seconds": 30, "beats": True, "state": "active"}
    await consumer.settle([end(claim)], claim=0)
    assert (await rows(LOOK, added.id))[0]["heartbeat_seconds"] is None


async def test_a_jobs_own_heartbeat_is_kept(queue, consume, rows):
    added = await queue.add(1, extra={"heartbeatSeconds": 30})
    consumer = consume(lease=30)
    claim = await claim_of(consumer)
    await consumer.settle([Completed(claim, b"1")], claim=0)
    assert (await rows(LOOK, added.id))[0]["heartbeat_seconds"] == 30


async def test_a_heartbeat_shorter_than_the_lease_is_kept_by_a_duty(queue, consume, rows):
    added = await queue.add(1, extra={"heartbeatSeconds": 10})
    consumer = consume(lease=60)
    claim = await claim_of(consumer)
    await rows("UPDATE job SET heartbeat_on = now() - interval '9 seconds' WHERE id = %s RETURNING 1", added.id)
    for duty in consumer.duties():
        await duty.run()
    fresh = "SELECT heartbeat_on > now() - interval '5 seconds' AS fresh FROM job WHERE id = %s"
    assert await rows(fresh, added.id) == [{"fresh": True}]
    await consumer.settle([Completed(claim, b"1")], claim=0)


async def test_a_job_taken_back_has_the_attempts_it_had(queue, consume, rows):
    added = await queue.add(1, attempts=2)
    first, second = consume(lease=1), consume(lease=30)
    stale = await claim_of(first)
    await rows("UPDATE job SET heartbeat_on = now() - interval '1 minute' WHERE id = %s RETURNING 1", added.id)
    report = await second.duties()[0].run()
    assert list(report.recovered) == [added.id]
    claim = await claim_of(second)
    settled = await second.settle([Failed(claim, "first failure")], claim=1)
    assert list(settled.verdicts) == [Verdict.RETRIED]
    settled = await second.settle([Failed(settled.claims[0], "second failure")], claim=0)
    assert list(settled.verdicts) == [Verdict.FAILED]
    assert list((await first.settle([Completed(stale, b"1")], claim=0)).verdicts) == [Verdict.LOST]


async def test_a_job_that_ran_too_long_is_failed_by_the_supervisor_and_its_handler_is_told(queue, boss, work, rows):
    told = asyncio.Event()

    async def handler(job):
        try:
            await asyncio.Event().wait()
        finally:
            if job.lost.is_set():
                told.set()

    added = await queue.add(1)
    async with work(handler, lease=0.4):
        await eventually(lambda: rows("SELECT 1 FROM job WHERE state = 'active'"))
        await rows("UPDATE job SET started_on = started_on - interval '1 day' WHERE id = %s RETURNING 1", added.id)
        await rows("UPDATE queue SET monitor_on = NULL, monitor_claim_on = NULL RETURNING 1")
        await boss.supervise()
        assert (await queue.get(added.id)).error == "job timed out"
        await asyncio.wait_for(told.wait(), 10)


@pytest.mark.slow
async def test_an_embedded_server_is_started_and_serves(tmp_path):
    async def handler(job):
        return job.data * 2

    url = f"pgboss+embedded:{tmp_path}"
    async with Queue("letters", url) as queue, Worker("letters", handler, queue.connection):
        added = await queue.add(21)
        assert await added.wait(timeout=20) == 42
        assert (await queue.counts())[State.COMPLETED] == 1
        await Boss(queue.connection).supervise()


async def test_retention_deletes_what_was_kept_long_enough(queue, boss, rows):
    kept = await queue.add(1)
    late = await queue.add(2)
    await rows("UPDATE job SET keep_until = now() - interval '1 second' WHERE id = %s RETURNING 1", late.id)
    assert "deleted 1 job that" in await boss.supervise()
    assert await queue.get(late.id) is None
    assert await queue.get(kept.id) is not None


async def test_a_backlog_is_warned_of_and_kept_if_asked_to(queue, boss, rows, caplog):
    await boss.update_queue(queue.name, warningQueueSize=1)
    for n in range(3):
        await queue.add(n)
    await boss.supervise(PgBossWorker(persist_warnings=True))
    assert "backlog of 3 jobs" in caplog.text
    assert await rows("SELECT type, data->>'name' AS name FROM warning") == [
        {"type": "queue_backlog", "name": queue.name}
    ]


async def _finished(queue, job_id):
    job = await queue.get(job_id)
    return job if job is not None and job.state.finished else None


LIMIT = "SELECT retry_limit, heartbeat_seconds FROM job WHERE id = %s"


@pytest.mark.parametrize("end", [Completed, Failed, Released, Snoozed])
async def test_a_job_has_its_own_limits_again_when_its_run_has_ended(queue, consume, rows, end):
    added = await queue.add(1, attempts=3)
    consumer = consume(lease=30)
    claim = await claim_of(consumer)
    assert await rows(LIMIT, added.id) == [{"retry_limit": 3, "heartbeat_seconds": 30}]
    assert (claim.job.attempts, (await queue.get(added.id)).attempts) == (3, 3)
    outcomes = {
        Completed: lambda: Completed(claim, b"1"), Failed: lambda: Failed(claim, "no luck"),
        Released: lambda: Released(claim), Snoozed: lambda: Snoozed(claim, 5.0),
    }  # fmt: skip
    await consumer.settle([outcomes[end]()], claim=0)
    assert await rows(LIMIT, added.id) == [{"retry_limit": 2, "heartbeat_seconds": None}]


async def test_a_dead_workers_lease_goes_with_it(queue, consume, rows):
    added = await queue.add(1)
    consumer = consume(lease=30)
    await claim_of(consumer)
    await rows("UPDATE job SET heartbeat_on = now() - interval '1 minute' WHERE id = %s RETURNING 1", added.id)
    assert list((await consumer.duties()[0].run()).recovered) == [added.id]
    assert await rows(LIMIT, added.id) == [{"retry_limit": 1, "heartbeat_seconds": None}]


async def test_a_supervisor_of_other_queues_takes_the_last_attempt_of_a_dead_worker_back(queue, boss, consume, rows):
    added = await queue.add(1)
    await claim_of(consume(lease=30))
    await rows("UPDATE job SET heartbeat_on = now() - interval '1 minute' WHERE id = %s RETURNING 1", added.id)
    await rows("UPDATE queue SET monitor_on = NULL, monitor_claim_on = NULL RETURNING 1")
    await boss.supervise()
    job = await queue.get(added.id)
    assert (job.state, job.error) == (State.WAITING, None)


async def test_a_limit_of_time_equal_to_the_queues_is_enforced(queue, boss, work):
    await boss.update_queue(queue.name, expireInSeconds=1)

    async def handler(job):
        await asyncio.sleep(30)

    added = await queue.add(1, extra={"expireInSeconds": 1})
    async with work(handler):
        job = await eventually(lambda: _finished(queue, added.id))
    assert (job.state, "1 s" in job.error or "time" in job.error) == (State.FAILED, True)


async def test_a_worker_with_a_time_limit_uses_its_own_where_the_job_has_only_the_queues(queue, work):
    async def handler(job):
        await asyncio.sleep(30)

    added = await queue.add(1)
    async with work(handler, timeout=0.2):
        job = await eventually(lambda: _finished(queue, added.id))
    assert job.state is State.FAILED
