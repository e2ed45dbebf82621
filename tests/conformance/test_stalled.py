"""Jobs whose worker died: they are run by another one, but not for ever."""

from __future__ import annotations

import time

from jobwire.boundary import Completed, Verdict
from jobwire.model import State
from jobwire.options import NewJob

SHORT = {"lease": 0.3, "recover_every": 0.1}
"""For consumers that never renew. One that does may be late by as much as the machine is busy."""
KEPT = {"lease": 1.0, "recover_every": 0.1}


async def test_a_job_whose_lease_ran_out_is_taken_back(queue, consume, recover):
    added = await queue.add(1)
    await consume(**SHORT).settle([], claim=1)
    other = consume(**SHORT)
    assert await recover(other) == [added.id]
    [claim] = (await other.settle([], claim=1)).claims
    assert (claim.job.id, claim.doomed) == (added.id, None)


async def test_a_recovered_job_runs_before_those_that_wait(queue, consume, recover):
    await queue.add_many([NewJob("stalled"), NewJob("waits")])
    await consume(**SHORT).settle([], claim=1)
    other = consume(**SHORT)
    await recover(other)
    [claim] = (await other.settle([], claim=1)).claims
    assert claim.job.data == "stalled"


async def test_a_worker_finishes_what_a_dead_one_left(queue, consume, work, finished):
    added = await queue.add_many([NewJob(n) for n in range(5)])
    await consume(**SHORT).settle([], claim=3)

    async def handler(job):
        return job.data

    async with work(handler, lease=30, recover_every=0.1) as worker:
        jobs = [await finished(queue, job.id) for job in added]
    assert [job.result for job in jobs] == [0, 1, 2, 3, 4]
    assert worker.stats.recovered == 3


async def test_the_outcome_of_a_stale_claim_is_lost_and_the_new_owners_counts(queue, consume, recover):
    added = await queue.add(1)
    dead, alive = consume(**SHORT), consume(**{**SHORT, "lease": 30})
    [stale] = (await dead.settle([], claim=1)).claims
    await recover(alive)
    [fresh] = (await alive.settle([], claim=1)).claims
    assert stale.token != fresh.token
    assert list((await dead.settle([Completed(stale, b'"stale"')], claim=0)).verdicts) == [Verdict.LOST]
    assert list(await dead.extend([stale])) == [stale]
    assert (await queue.get(added.id)).state is State.ACTIVE
    assert list((await alive.settle([Completed(fresh, b'"fresh"')], claim=0)).verdicts) == [Verdict.COMPLETED]
    assert (await queue.get(added.id)).result == "fresh"


async def test_a_lease_that_is_renewed_is_never_taken_away(queue, consume, eventually):
    await queue.add(1)
    holder, other = consume(**KEPT), consume(**KEPT)
    claims = (await holder.settle([], claim=1)).claims
    until = time.monotonic() + 2.5 * KEPT["lease"]

    async def kept_for_several_leases():
        assert list(await holder.extend(claims)) == []
        for duty in other.duties():
            assert list((await duty.run()).recovered) == []
        return time.monotonic() > until

    await eventually(kept_for_several_leases)
    verdicts = (await holder.settle([Completed(claims[0], b"null")], claim=0)).verdicts
    assert list(verdicts) == [Verdict.COMPLETED]


async def test_a_worker_keeps_the_lease_of_a_long_job(queue, work, consume, eventually, finished):
    until = time.monotonic() + 2.5 * KEPT["lease"]
    runs = []

    async def handler(job):
        runs.append(job.id)
        await eventually(lambda: time.monotonic() > until)
        return "kept"

    added = await queue.add(1)
    async with work(handler, **KEPT) as worker, work(handler, **KEPT) as rival:
        job = await finished(queue, added.id)
    assert (job.state, job.result, runs) == (State.COMPLETED, "kept", [added.id])
    assert worker.stats.lost + rival.stats.lost == 0


async def test_a_lease_is_kept_while_the_handler_blocks_the_event_loop(queue, work, finished):
    def block(job):
        until = time.monotonic() + 2.5 * KEPT["lease"]
        while time.monotonic() < until:
            time.sleep(0.05)
        return "done"

    async def handler(job):
        return block(job)

    added = await queue.add(1)
    async with work(handler, **KEPT) as worker:
        job = await finished(queue, added.id)
    assert (job.state, job.result) == (State.COMPLETED, "done")
    assert (worker.stats.lost, worker.stats.recovered) == (0, 0)


async def test_a_job_that_stalls_too_often_fails_without_being_run(queue, consume, recover, work, finished):
    added = await queue.add(1)
    await consume(**SHORT, max_stalled=0).settle([], claim=1)
    await recover(consume(**SHORT, max_stalled=0))
    runs = []

    async def handler(job):
        runs.append(job.id)

    async with work(handler, lease=30, recover_every=0.1, max_stalled=0):
        job = await finished(queue, added.id)
    assert job.state is State.FAILED
    assert "stalled" in job.error
    assert runs == []


async def test_a_job_may_stall_as_often_as_allowed(queue, consume, recover, work, finished):
    added = await queue.add(1)
    for _ in range(2):
        await consume(**SHORT, max_stalled=2).settle([], claim=1)
        await recover(consume(**SHORT, max_stalled=2))

    async def handler(job):
        return "third time lucky"

    async with work(handler, lease=30, recover_every=0.1, max_stalled=2):
        job = await finished(queue, added.id)
    assert (job.state, job.result) == (State.COMPLETED, "third time lucky")
