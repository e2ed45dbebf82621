"""An outcome that the store refuses is found among the others, and replaced or dropped when it is at fault."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from awaiting import eventually
from jobwire import Queue, StoreRefused, Worker
from jobwire.backends.memory.work.consumer import MemoryConsumer
from jobwire.boundary import Claim, Completed, Consumer, ConsumerSettings, Failed, Outcome, Released, Settled
from jobwire.journal import Journal
from jobwire.worker.refused_outcomes import RefusedOutcomes

REFUSAL = StoreRefused("the result is too large")


@pytest.fixture
async def queue() -> AsyncIterator[Queue]:
    async with Queue("q", "memory:refused-outcomes") as queue:
        yield queue


@pytest.fixture
async def consumer(queue: Queue) -> AsyncIterator[Consumer]:
    consumer = queue.connection.backend.consumer(ConsumerSettings(queue="q", worker_id="w"))
    yield consumer
    await consumer.close()


@pytest.fixture
async def claim(queue: Queue, consumer: Consumer) -> Claim:
    await queue.add({})
    [claim] = (await consumer.settle([], 1)).claims
    return claim


def refused(consumer: Consumer) -> RefusedOutcomes:
    return RefusedOutcomes(consumer, 5.0, Journal("w", "q"))


async def test_refused_outcomes_are_sent_in_halves_until_a_call_succeeds(consumer: Consumer, claim: Claim) -> None:
    outcomes = refused(consumer)
    together = outcomes.limit
    five = [Completed(claim, b"1")] * 5
    assert await outcomes.after(five, REFUSAL) == (five, [])
    assert outcomes.limit == 2
    outcomes.clear(five[:2])
    assert outcomes.limit == together


async def test_a_result_that_is_refused_three_times_becomes_a_failure(consumer: Consumer, claim: Claim) -> None:
    outcomes, result = refused(consumer), Completed(claim, b"1")
    for _ in range(2):
        assert await outcomes.after([result], REFUSAL) == ([result], [])
    again, dropped = await outcomes.after([result], REFUSAL)
    assert (again, dropped) == ([Failed(claim, "the store refuses the result: the result is too large")], [])


async def test_another_outcome_that_is_refused_three_times_is_dropped(consumer: Consumer, claim: Claim) -> None:
    outcomes, released = refused(consumer), Released(claim)
    for _ in range(2):
        assert await outcomes.after([released], REFUSAL) == ([released], [])
    assert await outcomes.after([released], REFUSAL) == ([], [released])


async def test_refusals_are_counted_from_the_start_after_the_store_took_the_outcome(
    consumer: Consumer, claim: Claim
) -> None:
    outcomes, result = refused(consumer), Completed(claim, b"1")
    for _ in range(2):
        await outcomes.after([result], REFUSAL)
    outcomes.clear([result])
    assert await outcomes.after([result], REFUSAL) == ([result], [])


async def test_a_dropped_outcome_is_logged_by_its_cause_and_not_as_a_lost_lease(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Refusing(MemoryConsumer):
        async def settle(self, outcomes: Sequence[Outcome], claim: int) -> Settled:
            if outcomes:
                raise REFUSAL
            return await super().settle(outcomes, claim)

    async def handler(job: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr("jobwire.backends.memory.backend.MemoryConsumer", Refusing)
    async with Worker("q", handler, queue.connection) as worker:
        job = await queue.add(1)
        await eventually(lambda: worker.stats.lost)
    assert f"the store refuses the outcome of job {job.id} (the result is too large)" in caplog.text
    assert "its lease had ended" not in caplog.text
    await queue.admin.obliterate(force=True)
