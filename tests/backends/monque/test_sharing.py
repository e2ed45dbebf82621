"""Several instances on one collection, jobwire's and the peer's: each job has one owner at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from bson import ObjectId

from awaiting import eventually
from jobwire import AddStatus, Queue, Worker, connect
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.produce import add
from jobwire.backends.monque.work.consumer import MonqueConsumer
from jobwire.boundary import Completed, ConsumerSettings, PreparedJob, Verdict
from jobwire.errors import StoreRefused
from jobwire.native import MonqueInstance, MonqueWorker
from jobwire.options import NewJob, Unique

from .peer import Peer, now


@pytest.mark.slow
async def test_two_schedulers_share_a_thousand_jobs_without_a_duplicate(queue, url, jobs):
    ran = Counter()

    async def handler(job):
        ran[job.data] += 1

    await queue.add_many([NewJob(n) for n in range(1000)])
    async with connect(url) as one, connect(url) as two:
        first, second = (Worker("emails", handler, where, concurrency=20) for where in (one, two))
        async with first, second:
            await eventually(lambda: first.stats.completed + second.stats.completed == 1000, within=60)
    assert (len(ran), set(ran.values())) == (1000, {1})
    assert first.stats.completed > 0 < second.stats.completed
    assert (first.stats.lost, second.stats.lost) == (0, 0)
    assert jobs.count_documents({"status": "completed"}) == 1000


async def test_a_worker_and_the_peer_share_jobs_without_a_duplicate(queue, work, peer, jobs):
    ran = Counter()

    async def handler(job):
        ran[job.data] += 1

    def peers_turn():
        job = peer.claim("emails")
        if job is None:
            return 0
        ran[job["data"]] += 1
        return 1 if peer.complete(job) is not None else 0

    await queue.add_many([NewJob(n) for n in range(400)])
    theirs = 0
    async with work(handler, concurrency=5) as worker:
        while worker.stats.completed + theirs < 400:
            theirs += await asyncio.to_thread(peers_turn)
    assert (len(ran), set(ran.values())) == (400, {1})
    assert theirs > 0 < worker.stats.completed


async def test_the_peers_job_is_finished_by_the_peer_alone_and_ours_by_us(queue, consume, peer, jobs):
    await queue.add_many([NewJob("ours"), NewJob("theirs")])
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    theirs = peer.claim("emails")
    assert peer.complete({"_id": ObjectId(claim.job.id)}) is None
    # Taken over: the peer recovers and claims what was ours.
    jobs.update_one({"_id": ObjectId(claim.job.id)}, {"$set": {"lockedAt": now() - timedelta(hours=1)}})
    assert Peer(jobs, "node-2").start() == 1
    assert peer.claim("emails")["_id"] == ObjectId(claim.job.id)
    assert list((await consumer.settle([Completed(claim, b"1")], claim=0)).verdicts) == [Verdict.LOST]
    assert list(await consumer.extend([claim])) == [claim]
    assert {one["status"] for one in jobs.find()} == {"processing"}
    assert peer.complete(theirs)["status"] == "completed"


async def test_an_instance_that_claims_a_job_again_does_not_finish_it_with_the_first_claim(queue, consume, jobs):
    added = await queue.add(1)
    consumer = consume("python-1")
    [first] = (await consumer.settle([], claim=1)).claims
    jobs.update_one(
        {"_id": ObjectId(added.id)},
        {"$set": {"status": "pending"}, "$unset": {"lockedAt": "", "claimedBy": "", "lastHeartbeat": ""}},
    )
    [second] = (await consumer.settle([], claim=1)).claims
    settled = await consumer.settle([Completed(first, b'"first"')], claim=0)
    assert list(settled.verdicts) == [Verdict.LOST]
    assert jobs.find_one({"_id": ObjectId(added.id)})["status"] == "processing"
    settled = await consumer.settle([Completed(second, b'"second"')], claim=0)
    assert list(settled.verdicts) == [Verdict.COMPLETED]
    assert (await queue.get(added.id)).result == "second"


async def test_a_lost_outcome_deletes_no_result_of_another_claim_in_the_same_millisecond(
    queue, consume, jobs, monkeypatch
):
    added = await queue.add(1)
    stale, valid = consume("python-1"), consume("python-2")
    [lost] = (await stale.settle([], claim=1)).claims
    jobs.update_one(
        {"_id": ObjectId(added.id)},
        {"$set": {"status": "pending"}, "$unset": {"lockedAt": "", "claimedBy": "", "lastHeartbeat": ""}},
    )
    [held] = (await valid.settle([], claim=1)).claims
    moment, about_to, may_delete = int(now().timestamp() * 1000) + 60_000, asyncio.Event(), asyncio.Event()
    delete = SideData.remove_runs

    async def delete_late(self, runs):
        about_to.set()
        await may_delete.wait()
        await delete(self, runs)

    monkeypatch.setattr(MonqueConsumer, "_next_moment", lambda _: moment)
    monkeypatch.setattr(SideData, "remove_runs", delete_late)
    late = asyncio.create_task(stale.settle([Completed(lost, b'"stale"')], claim=0))
    await about_to.wait()
    assert list((await valid.settle([Completed(held, b'"valid"')], claim=0)).verdicts) == [Verdict.COMPLETED]
    may_delete.set()
    assert list((await late).verdicts) == [Verdict.LOST]
    assert (await queue.get(added.id)).result == "valid"


async def test_a_late_result_never_replaces_the_one_that_counts(queue, consume, jobs):
    added = await queue.add(1)
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([Completed(claim, b'"counts"')], claim=0)
    await consumer.settle([Completed(claim, b'"late"')], claim=0)
    assert (await queue.get(added.id)).result == "counts"
    notes = list(jobs.database["monque_jobs_jobwire"].find({"_id": ObjectId(added.id)}))
    assert [len(note["runs"]) for note in notes] == [1]


async def test_a_living_instance_with_the_same_id_is_detected_and_nothing_is_claimed(queue, consume, connection):
    await queue.add_many([NewJob(1), NewJob(2)])
    await consume("twin").settle([], claim=1)
    second = consume("twin")
    with pytest.raises(StoreRefused, match="'twin' is in use"):
        await second.settle([], claim=1)
    assert (await queue.counts())["waiting"] == 1


@pytest.mark.parametrize("workers", [1, 3])
async def test_the_first_claims_of_an_instance_are_not_taken_for_those_of_a_twin(queue, url, workers):
    """It begins with several calls at once, and all but the first of them have to connect before they look."""
    await queue.add_many([NewJob(n) for n in range(100)])
    for turn in range(5):
        native = MonqueWorker(instance=MonqueInstance(f"shared-{turn}")) if workers > 1 else None
        async with connect(url) as fresh:
            settings = ConsumerSettings(queue="emails", worker_id=f"alone-{turn}", native=native)
            consumers = [fresh.backend.consumer(settings) for _ in range(workers)]
            calls = [one.settle([], claim=1) for one in consumers * (6 // workers)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [error for error in answers if isinstance(error, Exception)] == []


async def test_the_peer_detects_our_living_instance_of_its_id(queue, consume, jobs):
    await queue.add(1)
    await consume("node-1").settle([], claim=1)
    with pytest.raises(ConnectionError):
        Peer(jobs, "node-1").start()


async def test_an_id_is_free_again_when_its_heart_has_stopped(queue, consume, jobs):
    await queue.add_many([NewJob(1), NewJob(2)])
    await consume("twin", lease=30).settle([], claim=1)
    jobs.update_many({}, {"$set": {"lastHeartbeat": now() - timedelta(seconds=20)}})
    assert len((await consume("twin", lease=30).settle([], claim=1)).claims) == 1


async def test_a_key_is_taken_per_name_and_by_either_side(queue, connection, peer, jobs):
    job = peer.enqueue("emails", "theirs", uniqueKey="k")
    ours = await queue.add("ours", unique=Unique("k"))
    assert (ours.id, ours.add_status) == (str(job["_id"]), AddStatus.DUPLICATE)
    async with Queue("letters", connection) as other:
        assert (await other.add("ours", unique=Unique("k"))).add_status is AddStatus.ADDED
    assert peer.enqueue("letters", "theirs", uniqueKey="k")["data"] == "ours"
    assert jobs.count_documents({}) == 2


async def test_a_race_for_one_key_on_many_connections_makes_one_job_and_no_error(url, jobs):
    async with Queue("emails", url) as one, Queue("emails", url) as two, Queue("emails", url) as three:
        for n in range(20):
            adds = [queue.add(n, unique=Unique(f"k{n}")) for queue in (one, two, three) for _ in range(3)]
            added = await asyncio.gather(*adds)
            assert len({job.id for job in added}) == 1
            assert [job.add_status for job in added].count(AddStatus.ADDED) == 1
    assert jobs.count_documents({}) == 20


async def test_an_add_whose_answer_was_lost_is_not_made_twice(queue, connection, jobs):
    store = connection.backend.store
    made = add.documents("emails", [_prepared(1, None), _prepared(2, "k"), _prepared(3, None)], store.clock.now_ms())
    first = await add.add(store, made)
    again = await add.add(store, made)
    assert again == first
    assert jobs.count_documents({}) == 3


def _prepared(data, key):
    new = NewJob(data, unique=Unique(key) if key else None)
    return PreparedJob(new, "emails", str(data).encode())


async def test_workers_of_one_instance_share_its_identity_and_its_limit(queue, connection, jobs):
    running, most = Counter(), 0
    go_on = asyncio.Event()

    async def handler(job):
        nonlocal most
        running["now"] += 1
        most = max(most, running["now"])
        await go_on.wait()
        running["now"] -= 1

    native = MonqueWorker(instance=MonqueInstance("mailer-1", concurrency=3))
    async with Queue("letters", connection) as letters:
        await queue.add_many([NewJob(n) for n in range(5)])
        await letters.add_many([NewJob(n) for n in range(5)])
        workers = [Worker(name, handler, connection, concurrency=4, native=native) for name in ("emails", "letters")]
        async with workers[0], workers[1]:
            await eventually(lambda: running["now"] == 3)
            assert {one["claimedBy"] for one in jobs.find({"status": "processing"})} == {"mailer-1"}
            go_on.set()
            await eventually(lambda: sum(worker.stats.completed for worker in workers) == 10)
    assert most == 3
