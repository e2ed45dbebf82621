"""Whose jobs are taken back, and whose are not."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from bson import ObjectId

from awaiting import eventually
from jobwire.boundary import Completed, Failed, Verdict
from jobwire.options import Keep, NewJob

from .peer import Peer, now

HOUR = timedelta(hours=1)


async def recovered_by(consumer):
    return [job_id for duty in consumer.duties() for job_id in (await duty.run()).recovered]


@pytest.mark.parametrize(
    ("since", "taken"),
    [
        ({"lockedAt": HOUR, "lastHeartbeat": HOUR}, True),
        ({"lockedAt": HOUR}, True),
        ({"lockedAt": HOUR, "lastHeartbeat": timedelta(seconds=50)}, False),
        ({"lockedAt": timedelta(minutes=29), "lastHeartbeat": HOUR}, False),
        ({"lockedAt": timedelta(), "lastHeartbeat": timedelta()}, False),
    ],
    ids=["silent", "never beat", "heart beats", "younger than the lock timeout", "fresh"],
)
async def test_a_job_of_the_peer_is_taken_back_when_its_lock_is_old_and_its_heart_is_still(
    queue, consume, peer, since, taken
):
    jobs = peer.jobs
    job = peer.enqueue("emails", 1)
    peer.claim("emails")
    jobs.update_one({"_id": job["_id"]}, {"$unset": {"lastHeartbeat": ""}})
    jobs.update_one({"_id": job["_id"]}, {"$set": {field: now() - age for field, age in since.items()}})
    assert await recovered_by(consume()) == ([str(job["_id"])] if taken else [])
    stored = jobs.find_one({"_id": job["_id"]})
    assert stored["status"] == ("pending" if taken else "processing")
    if taken:
        assert not {"lockedAt", "claimedBy", "lastHeartbeat"} & set(stored)
        assert (stored["failCount"], stored["nextRunAt"]) == (0, job["nextRunAt"])


async def test_a_job_that_the_peer_took_over_from_us_is_not_taken_back_by_our_old_lease(queue, consume, peer, jobs):
    added = await queue.add(1)
    await consume(lease=0.1).settle([], claim=1)
    past = {"lockedAt": now() - HOUR, "jobwire.until": now() - HOUR}
    jobs.update_one({"_id": ObjectId(added.id)}, {"$set": past})
    assert Peer(jobs, "node-2").start() == 1
    peer.claim("emails")
    stored = jobs.find_one({"_id": ObjectId(added.id)})
    assert (stored["claimedBy"], stored["jobwire"]["by"]) == ("node-1", "worker-1")
    assert await recovered_by(consume()) == []
    assert peer.complete(stored)["status"] == "completed"


async def test_a_live_job_of_ours_survives_the_start_of_the_peer_however_long_it_runs(queue, consume, jobs):
    added = await queue.add(1)
    consumer = consume(lease=30)
    claims = (await consumer.settle([], claim=1)).claims
    jobs.update_one({"_id": ObjectId(added.id)}, {"$set": {"lockedAt": now() - HOUR}})
    await consumer.extend(claims)
    assert Peer(jobs, "node-2").start() == 0


async def test_jobs_are_recovered_while_workers_run_and_not_only_at_their_start(queue, work, peer, jobs):
    async with work(lambda job: "done", recover_every=0.1) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        job = peer.enqueue("emails", 1, status="processing", claimedBy="dead", lockedAt=now() - HOUR)
        await eventually(lambda: jobs.find_one({"_id": job["_id"]})["status"] == "completed")
    assert worker.stats.recovered == 1


async def test_two_that_recover_at_once_count_a_job_once(queue, consume, jobs):
    await queue.add_many([NewJob(n) for n in range(20)])
    await consume(lease=0.1).settle([], claim=20)
    jobs.update_many({}, {"$set": {"jobwire.until": now() - HOUR}})
    found = await asyncio.gather(*(recovered_by(consume()) for _ in range(4)))
    assert sorted(job_id for ids in found for job_id in ids) == sorted(str(one["_id"]) for one in jobs.find())
    assert {one["jobwire"]["stalls"] for one in jobs.find()} == {1}


async def test_jobs_of_other_names_are_left_to_their_own_workers(consume, queue, peer, jobs):
    peer.enqueue("letters", 1, status="processing", claimedBy="dead", lockedAt=now() - HOUR)
    assert await recovered_by(consume()) == []


async def test_old_finished_jobs_go_when_a_worker_is_told_to_and_cancelled_ones_stay(queue, work, peer, jobs):
    old, young = now() - HOUR, now()
    for status in ("completed", "failed", "cancelled"):
        for moment in (old, young):
            jobs.insert_one({**peer.fresh("emails", 1), "status": status, "updatedAt": moment})
    async with work(lambda job: None, keep_completed=Keep(age=60), keep_failed=Keep(count=1)):
        await eventually(lambda: jobs.count_documents({}) == 4)
    left = sorted((one["status"], one["updatedAt"] > old) for one in jobs.find())
    assert left == [("cancelled", False), ("cancelled", True), ("completed", True), ("failed", True)]
    assert "status_1_updatedAt_1" in jobs.index_information()


async def test_notes_of_jobs_that_a_peer_deleted_are_swept(queue, consume, jobs):
    kept, gone = await queue.add_many([NewJob(1), NewJob(2)])
    consumer = consume()
    claims = (await consumer.settle([], claim=2)).claims
    await consumer.settle([Completed(claim, b'"x"') for claim in claims], claim=0)
    side = jobs.database["monque_jobs_jobwire"]
    old = ObjectId.from_datetime(now() - HOUR)
    side.insert_one({"_id": old, "name": "emails", "job": ObjectId(gone.id), "line": "a line"})
    side.insert_one({"_id": ObjectId.from_datetime(now() - 2 * HOUR), "name": "emails", "runs": {}})
    jobs.delete_one({"_id": ObjectId(gone.id)})
    for duty in consumer.duties():
        await duty.run()
    left = {one["_id"] for one in side.find({"name": "emails"})}
    assert ObjectId(kept.id) in left
    assert old not in left
    assert len(left) == 2, "the note of the job that went a moment ago stays for the next sweep"


@pytest.mark.parametrize("raises", [False, True], ids=["completed", "failed"])
async def test_an_outcome_is_refused_though_another_claim_was_settled_in_the_same_millisecond(
    queue, consume, jobs, monkeypatch, raises
):
    """The two leave the same `updatedAt` and status."""

    def outcome(claim, who):
        return Failed(claim, who, final=True) if raises else Completed(claim, f'"{who}"'.encode())

    added = await queue.add(1)
    first, second = consume("first", lease=0.1), consume("second", lease=30)
    [lost] = (await first.settle([], claim=1)).claims
    await eventually(lambda: recovered_by(second))
    [held] = (await second.settle([], claim=1)).claims
    assert (await second.settle([outcome(held, "second")], claim=0)).verdicts == [
        Verdict.FAILED if raises else Verdict.COMPLETED
    ]
    settled = jobs.find_one({"_id": ObjectId(added.id)})["updatedAt"]
    monkeypatch.setattr(first, "_next_moment", lambda: round(settled.timestamp() * 1000))

    assert (await first.settle([outcome(lost, "first")], claim=0)).verdicts == [Verdict.LOST]

    job = await queue.get(added.id)
    assert (job.error if raises else job.result) == "second"
