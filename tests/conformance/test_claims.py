"""The contracts of a consumer: what claim, settle, extend and wait promise the worker above them."""

from __future__ import annotations

import asyncio
import time

import pytest

from awaiting import assert_left
from jobwire.boundary import Completed, Failed, Feature, Released, Snoozed, Verdict
from jobwire.model import State
from jobwire.options import NewJob

from .conftest import with_attempts


async def claim_of(consumer, count=1):
    return list((await consumer.settle([], claim=count)).claims)


async def test_jobs_are_claimed_in_order_and_no_more_than_asked_for(queue, consume):
    await queue.add_many([NewJob(n) for n in range(5)])
    consumer = consume()
    assert [claim.job.data for claim in await claim_of(consumer, 3)] == [0, 1, 2]
    assert [claim.job.data for claim in await claim_of(consumer, 3)] == [3, 4]
    assert await claim_of(consumer, 3) == []


async def test_a_claimed_job_is_active_and_shows_its_start(queue, consume):
    added = await queue.add(1)
    [claim] = await claim_of(consume())
    assert (claim.job.id, claim.job.state, claim.doomed) == (added.id, State.ACTIVE, None)
    job = await queue.get(added.id)
    assert job.state is State.ACTIVE
    assert job.started_at is not None


async def test_every_claim_has_a_token_of_its_own(queue, consume):
    await queue.add_many([NewJob(n) for n in range(10)])
    claims = [*await claim_of(consume(), 5), *await claim_of(consume(), 5)]
    assert len({claim.job.id for claim in claims}) == 10
    assert len({(claim.job.id, claim.token) for claim in claims}) == 10
    assert all(claim.token for claim in claims)


async def test_two_consumers_never_claim_the_same_job(queue, consume):
    await queue.add_many([NewJob(n) for n in range(200)])
    consumers = [consume() for _ in range(10)]

    async def take_all(consumer):
        taken = []
        while claims := await claim_of(consumer, 3):
            taken += [claim.job.id for claim in claims]
        return taken

    taken = await asyncio.gather(*map(take_all, consumers))
    ids = [job_id for each in taken for job_id in each]
    assert len(ids) == len(set(ids)) == 200


async def test_one_call_finishes_jobs_and_claims_the_next(queue, consume):
    await queue.add_many([NewJob(n) for n in range(4)])
    consumer = consume()
    first, second = await claim_of(consumer, 2)
    settled = await consumer.settle([Completed(first, b"1"), Completed(second, b"2")], claim=2)
    assert list(settled.verdicts) == [Verdict.COMPLETED, Verdict.COMPLETED]
    assert [claim.job.data for claim in settled.claims] == [2, 3]


async def test_asking_for_no_job_claims_none(queue, consume):
    await queue.add(1)
    settled = await consume().settle([], claim=0)
    assert list(settled.claims) == []
    assert (await queue.counts())[State.WAITING] == 1


async def test_verdicts_come_in_the_order_of_the_outcomes(queue, consume):
    added = await queue.add_many([NewJob(n) for n in range(5)])
    consumer = consume()
    a, b, c, d, e = await claim_of(consumer, 5)
    await consumer.settle([Completed(e, b"null")], claim=0)
    outcomes = [Snoozed(a, 3600), Failed(b, "no", final=True), Completed(e, b"0"), Released(c), Completed(d, b'"ok"')]
    settled = await consumer.settle(outcomes, claim=0)
    assert list(settled.verdicts) == [
        Verdict.SNOOZED, Verdict.FAILED, Verdict.LOST, Verdict.RELEASED, Verdict.COMPLETED,
    ]  # fmt: skip
    states = [(await queue.get(job.id)).state for job in added]
    assert states == [State.DELAYED, State.FAILED, State.WAITING, State.COMPLETED, State.COMPLETED]


@pytest.mark.parametrize("kind", ["completed", "failed", "released", "snoozed"])
async def test_settling_the_same_outcome_again_is_lost_and_changes_nothing(queue, consume, kind):
    added = await queue.add(1)
    consumer = consume()
    [claim] = await claim_of(consumer)
    outcome = {
        "completed": Completed(claim, b'"first"'),
        "failed": Failed(claim, "first", final=True),
        "released": Released(claim),
        "snoozed": Snoozed(claim, 3600),
    }[kind]
    [verdict] = (await consumer.settle([outcome], claim=0)).verdicts
    assert verdict.value == kind
    before = await queue.get(added.id)
    settled = await consumer.settle([outcome, Completed(claim, b'"second"')], claim=0)
    assert list(settled.verdicts) == [Verdict.LOST, Verdict.LOST]
    after = await queue.get(added.id)
    assert (after.state, after.result, after.error) == (before.state, before.result, before.error)
    assert after.attempts_made == before.attempts_made


async def test_the_outcome_of_a_job_that_is_gone_is_lost(queue, consume):
    added = await queue.add(1)
    consumer = consume()
    [claim] = await claim_of(consumer)
    await consumer.settle([Completed(claim, b"1")], claim=0)
    await queue.admin.remove(added.id)
    [verdict] = (await consumer.settle([Completed(claim, b"2")], claim=0)).verdicts
    assert verdict is Verdict.LOST
    assert await queue.get(added.id) is None


async def test_a_released_job_runs_next_and_is_charged_no_attempt(queue, consume):
    added = await queue.add_many([NewJob("first"), NewJob("second")])
    consumer = consume()
    [claim] = await claim_of(consumer)
    settled = await consumer.settle([Released(claim)], claim=1)
    assert list(settled.verdicts) == [Verdict.RELEASED]
    [again] = settled.claims
    assert (again.job.id, again.job.attempts_made) == (added[0].id, 0)
    assert (await queue.get(added[0].id)).attempts_made == 0


async def test_a_released_job_with_a_priority_runs_before_its_equals(queue, consume, needs):
    with needs(queue, Feature.PRIORITIES):
        await queue.add_many([NewJob("first", priority=3), NewJob("second", priority=3)])
        consumer = consume()
        [claim] = await claim_of(consumer)
        [again] = (await consumer.settle([Released(claim)], claim=1)).claims
        assert again.job.data == "first"


async def test_a_snoozed_job_comes_back_after_its_delay_uncharged(queue, consume, eventually):
    added = await queue.add(1)
    consumer = consume()
    [claim] = await claim_of(consumer)
    began = time.monotonic()
    await consumer.settle([Snoozed(claim, 0.2)], claim=0)
    job = await queue.get(added.id)
    assert (job.state, job.attempts_made) == (State.DELAYED, 0)
    [again] = await eventually(lambda: claim_of(consumer))
    assert (again.job.id, again.job.attempts_made) == (added.id, 0)
    assert time.monotonic() - began >= 0.199


@with_attempts(2)
async def test_a_failed_run_is_retried_while_attempts_are_left(queue, consume, tries):
    added = await queue.add(1, **tries.job)
    consumer = consume(**tries.consumer)
    [claim] = await claim_of(consumer)
    settled = await consumer.settle([Failed(claim, "once")], claim=1)
    assert list(settled.verdicts) == [Verdict.RETRIED]
    [claim] = settled.claims
    assert claim.job.attempts_made == 1
    assert list((await consumer.settle([Failed(claim, "twice")], claim=0)).verdicts) == [Verdict.FAILED]
    job = await queue.get(added.id)
    assert (job.state, job.error, job.attempts_made) == (State.FAILED, "twice", 2)


@with_attempts(2)
async def test_a_delay_given_with_the_failure_is_used(queue, consume, tries):
    added = await queue.add(1, **tries.job)
    consumer = consume(**tries.consumer)
    [claim] = await claim_of(consumer)
    began = time.monotonic()
    settled = await consumer.settle([Failed(claim, "busy", delay=1800)], claim=1)
    assert_left(settled.next_in, of=1800, since=began)
    assert (list(settled.verdicts), list(settled.claims)) == ([Verdict.RETRIED], [])
    assert (await queue.get(added.id)).state is State.DELAYED


@with_attempts(5)
async def test_a_final_failure_ends_the_job_whatever_attempts_are_left(queue, consume, tries):
    added = await queue.add(1, **tries.job)
    consumer = consume(**tries.consumer)
    [claim] = await claim_of(consumer)
    settled = await consumer.settle([Failed(claim, "never again", final=True)], claim=1)
    assert (list(settled.verdicts), list(settled.claims)) == ([Verdict.FAILED], [])
    assert (await queue.get(added.id)).state is State.FAILED


async def test_an_empty_queue_tells_when_its_next_job_comes_due(queue, consume):
    began = time.monotonic()
    await queue.add_many([NewJob(1, delay=60), NewJob(2, delay=30)])
    settled = await consume().settle([], claim=1)
    assert_left(settled.next_in, of=30, since=began)
    assert list(settled.claims) == []


async def test_extending_tells_which_claims_are_lost(queue, consume):
    await queue.add_many([NewJob(n) for n in range(3)])
    consumer = consume()
    a, b, c = await claim_of(consumer, 3)
    assert list(await consumer.extend([a, b, c])) == []
    await consumer.settle([Completed(b, b"null")], claim=0)
    assert list(await consumer.extend([a, b, c])) == [b]


async def test_another_consumer_may_renew_a_claim(queue, consume, connection):
    await queue.add(1)
    [claim] = await claim_of(consume())
    twin = connection.backend.twin()
    await twin.open()
    try:
        from jobwire.boundary import ConsumerSettings

        keeper = twin.consumer(ConsumerSettings(queue=queue.name, worker_id="worker-1"))
        assert list(await keeper.extend([claim])) == []
        await keeper.close()
    finally:
        await twin.close()


async def test_waiting_ends_when_a_job_arrives(queue, consume):
    consumer = consume()
    waiting = asyncio.create_task(consumer.wait(60))
    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done
    await queue.add(1)
    await asyncio.wait_for(waiting, 20)
    assert len(await claim_of(consumer)) == 1


async def test_waiting_ends_when_its_time_is_over(queue, consume):
    began = time.monotonic()
    await asyncio.wait_for(consume().wait(0.2), 20)
    assert time.monotonic() - began >= 0.15


async def test_a_wait_that_was_cancelled_harms_nothing(queue, consume):
    consumer = consume()
    assert await claim_of(consumer) == []  # a worker waits only after a claim that found nothing
    waiting = asyncio.create_task(consumer.wait(30))
    await asyncio.wait([waiting], timeout=0.1)
    waiting.cancel()
    await asyncio.wait([waiting])
    await queue.add(1)
    await asyncio.wait_for(consumer.wait(60), 20)
    assert len(await claim_of(consumer)) == 1


async def test_a_consumer_that_was_reset_works_on(queue, consume):
    consumer = consume()
    await queue.add_many([NewJob(1), NewJob(2)])
    [claim] = await claim_of(consumer)
    await consumer.reset()
    settled = await consumer.settle([Completed(claim, b"null")], claim=1)
    assert list(settled.verdicts) == [Verdict.COMPLETED]
    assert len(settled.claims) == 1
