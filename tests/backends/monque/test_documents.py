"""Stored state, field for field as the peer leaves it at every step of a job's life."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from bson import ObjectId
from pymongo import AsyncMongoClient

from awaiting import eventually
from jobwire import AddStatus
from jobwire.backends.monque.produce.add import Adding, documents
from jobwire.boundary import Added, Completed, ConsumerSettings, Failed, Released, Snoozed
from jobwire.cron import Cron
from jobwire.errors import InvalidOption, StoreRefused
from jobwire.model import State
from jobwire.options import NewJob, Unique
from jobwire.preparing import prepare
from jobwire.queue import Queue

from .peer import now

FRESH = {"_id", "name", "data", "status", "nextRunAt", "failCount", "createdAt", "updatedAt"}


def types_of(document):
    return {field: type(value) for field, value in document.items()}


async def test_a_fresh_job_has_exactly_the_fields_and_types_of_the_peers(queue, peer, jobs):
    data = {"to": "a@example.com", "n": 1, "price": 9.5, "big": 2**40, "none": None, "tags": ["x"]}
    added = await queue.add(data)
    ours = jobs.find_one({"_id": ObjectId(added.id)})
    theirs = jobs.find_one({"_id": peer.enqueue("emails", {**data, "big": float(2**40)})["_id"]})
    assert types_of(ours) == types_of(theirs)
    assert (ours["data"], ours["status"], ours["failCount"]) == (theirs["data"], "pending", 0)
    assert ours["createdAt"] == ours["updatedAt"] == ours["nextRunAt"]
    assert abs(ours["createdAt"] - theirs["createdAt"]) < timedelta(seconds=10)


async def test_numbers_are_stored_as_the_nodejs_driver_stores_them(queue, jobs):
    added = await queue.add([1, -(2**31), 2**31, 2**53 - 1, 1.5])
    stored = jobs.find_one({"_id": ObjectId(added.id)})["data"]
    assert [type(one) for one in stored] == [int, int, float, float, float]
    assert (await queue.get(added.id)).data == [1, -(2**31), 2**31, 2**53 - 1, 1.5]


async def test_an_unused_option_leaves_no_field_and_a_used_one_its_own(queue, jobs):
    plain = await queue.add(None)
    keyed = await queue.add(None, unique=Unique("k"))
    assert set(jobs.find_one({"_id": ObjectId(plain.id)})) == FRESH
    assert set(jobs.find_one({"_id": ObjectId(keyed.id)})) == FRESH | {"uniqueKey"}
    await queue.schedule("daily", cron="0 9 * * *")
    assert set(jobs.find_one({"uniqueKey": "daily"})) == FRESH | {"uniqueKey", "repeatInterval"}


async def test_a_claimed_job_has_the_peers_five_fields_and_our_one(queue, consume, peer, jobs):
    added = await queue.add(1)
    await consume("python-7", lease=40).settle([], claim=1)
    ours = jobs.find_one({"_id": ObjectId(added.id)})
    peer.enqueue("emails", 1)
    theirs = peer.claim("emails")
    private = ours.pop("jobwire")
    assert types_of(ours) == types_of(theirs)
    assert (ours["status"], ours["claimedBy"], ours["heartbeatInterval"]) == ("processing", "python-7", 10_000)
    assert ours["lockedAt"] == ours["lastHeartbeat"] == ours["updatedAt"] == private["at"]
    assert private["until"] == ours["lockedAt"] + timedelta(seconds=40)
    assert ours["nextRunAt"] == ours["createdAt"]


async def test_a_completed_job_is_the_peers_completed_job(queue, consume, peer, jobs):
    added = await queue.add(1)
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([Completed(claim, b'{"sent":true}')], claim=0)
    ours = jobs.find_one({"_id": ObjectId(added.id)})
    peer.enqueue("emails", 1)
    theirs = peer.complete(peer.claim("emails"))
    assert types_of(ours) == types_of(theirs)
    assert set(ours) == FRESH | {"heartbeatInterval"}
    assert (ours["status"], ours["failCount"]) == ("completed", 0)


async def test_a_failure_is_written_with_its_reason_and_the_peers_backoff(queue, consume, jobs):
    added = await queue.add(1)
    consumer = consume()
    for n in (1, 2, 3, 4):
        jobs.update_one({"_id": ObjectId(added.id)}, {"$set": {"nextRunAt": now()}})
        [claim] = (await consumer.settle([], claim=1)).claims
        await consumer.settle([Failed(claim, f"no luck {n}")], claim=0)
        stored = jobs.find_one({"_id": ObjectId(added.id)})
        assert set(stored) == FRESH | {"heartbeatInterval", "failReason"}
        assert (stored["status"], stored["failCount"], stored["failReason"]) == ("pending", n, f"no luck {n}")
        wait = (stored["nextRunAt"] - stored["updatedAt"]).total_seconds()
        assert 0.75 * 2**n <= wait <= 1.25 * 2**n


async def test_the_tenth_failure_is_the_last_and_leaves_the_due_time(queue, consume, jobs):
    added = await queue.add(1)
    jobs.update_one({"_id": ObjectId(added.id)}, {"$set": {"failCount": 9, "failReason": "old"}})
    before = jobs.find_one({"_id": ObjectId(added.id)})
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    assert claim.job.attempts == 10
    await consumer.settle([Failed(claim, "the end")], claim=0)
    stored = jobs.find_one({"_id": ObjectId(added.id)})
    assert (stored["status"], stored["failCount"], stored["failReason"]) == ("failed", 10, "the end")
    assert stored["nextRunAt"] == before["nextRunAt"]
    assert not {"lockedAt", "claimedBy", "lastHeartbeat", "jobwire"} & set(stored)


async def test_success_forgets_the_reason_of_an_earlier_failure(queue, consume, jobs):
    added = await queue.add(1)
    jobs.update_one({"_id": ObjectId(added.id)}, {"$set": {"failCount": 1, "failReason": "old"}})
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([Completed(claim, b"null")], claim=0)
    stored = jobs.find_one({"_id": ObjectId(added.id)})
    assert ("failReason" in stored, stored["failCount"]) == (False, 1)


@pytest.mark.parametrize("put_back", [Released, lambda claim: Snoozed(claim, 60)])
async def test_a_job_that_is_put_back_is_pending_and_uncharged(queue, consume, jobs, put_back):
    added = await queue.add(1)
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([put_back(claim)], claim=0)
    stored = jobs.find_one({"_id": ObjectId(added.id)})
    assert set(stored) == FRESH | {"heartbeatInterval"}
    assert (stored["status"], stored["failCount"]) == ("pending", 0)


async def test_a_recurring_job_goes_back_to_its_next_time_after_now_as_the_same_document(queue, consume, jobs):
    await queue.schedule("pulse", cron="*/5 * * * *", data={"n": 1})
    key = jobs.find_one({"uniqueKey": "pulse"})["_id"]
    late = now() - timedelta(days=3)
    jobs.update_one({"_id": key}, {"$set": {"nextRunAt": late, "failCount": 2, "failReason": "old"}})
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([Completed(claim, b"null")], claim=0)
    stored = jobs.find_one({"_id": key})
    assert set(stored) == FRESH | {"uniqueKey", "repeatInterval", "heartbeatInterval"}
    assert (stored["status"], stored["failCount"]) == ("pending", 0)
    assert stored["nextRunAt"] == Cron.parse("*/5 * * * *").next_after(stored["updatedAt"])


async def test_a_run_whose_cron_text_nobody_can_read_has_failed_as_in_the_peer(queue, consume, peer, jobs):
    job = peer.enqueue("emails", 1, repeatInterval="every full moon")
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    settled = await consumer.settle([Completed(claim, b"null")], claim=0)
    stored = jobs.find_one({"_id": job["_id"]})
    assert (settled.verdicts[0].value, stored["status"], stored["failCount"]) == ("retried", "pending", 1)
    assert "every full moon" in stored["failReason"]


async def test_an_empty_cron_text_is_none(queue, consume, peer, jobs):
    job = peer.enqueue("emails", 1, repeatInterval="")
    consumer = consume()
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([Completed(claim, b"null")], claim=0)
    assert jobs.find_one({"_id": job["_id"]})["status"] == "completed"


async def test_a_job_as_the_specification_shows_it_is_run_and_loses_its_null_lock(queue, work, jobs):
    moment = now()
    key = jobs.insert_one(
        {
            "name": "emails", "data": {"to": "a"}, "status": "pending", "nextRunAt": moment, "lockedAt": None,
            "failCount": 0, "createdAt": moment, "updatedAt": moment,
        }
    ).inserted_id  # fmt: skip
    async with work(lambda job: None):
        await eventually(lambda: jobs.find_one({"_id": key})["status"] == "completed")
    assert "lockedAt" not in jobs.find_one({"_id": key})


async def test_fields_of_others_survive_a_whole_life(queue, work, peer, jobs):
    job = peer.enqueue("emails", 1, extra={"keep": 1})
    async with work(lambda job: "x"):
        await eventually(lambda: jobs.find_one({"_id": job["_id"]})["status"] == "completed")
    assert jobs.find_one({"_id": job["_id"]})["extra"] == {"keep": 1}


async def test_the_heartbeat_renews_the_lock_too(queue, consume, jobs):
    added = await queue.add(1)
    consumer = consume(lease=30)
    claims = (await consumer.settle([], claim=1)).claims
    old = now() - timedelta(hours=1)
    jobs.update_one({"_id": ObjectId(added.id)}, {"$set": {"lockedAt": old, "lastHeartbeat": old}})
    assert list(await consumer.extend(claims)) == []
    stored = jobs.find_one({"_id": ObjectId(added.id)})
    assert stored["lockedAt"] == stored["lastHeartbeat"] == stored["updatedAt"] > now() - timedelta(minutes=1)


async def test_both_sides_accept_the_indexes_that_the_other_made(url, jobs, peer):
    async with Queue("emails", url):
        ours = jobs.index_information()
        peer.create_indexes()
        assert set(jobs.index_information()) == set(ours)
    jobs.drop()
    peer.create_indexes()
    theirs = jobs.index_information()
    async with Queue("emails", url):
        after = jobs.index_information()
    names = {name: (one["key"], one.get("unique"), one.get("partialFilterExpression")) for name, one in ours.items()}
    assert names == {
        name: (one["key"], one.get("unique"), one.get("partialFilterExpression")) for name, one in theirs.items()
    }
    assert set(after) == set(theirs)


async def test_an_index_in_the_way_is_named(url, jobs):
    jobs.create_index([("name", 1), ("status", 1)], name="mine")
    with pytest.raises(StoreRefused, match="mine"):
        async with Queue("emails", url):
            pass


async def test_indexes_are_left_alone_when_told_so(url, jobs):
    async with Queue("emails", f"{url}&create_indexes=false") as queue:
        added = await queue.add(1)
        assert (await queue.get(added.id)).state is State.WAITING
        settings = ConsumerSettings(queue="emails", worker_id="python-1")
        [claimed] = (await queue.connection.backend.consumer(settings).settle([], claim=1)).claims
    assert claimed.job.id == added.id
    assert set(jobs.index_information()) == {"_id_"}


async def test_a_job_of_a_transaction_is_seen_when_it_commits_and_not_at_all_when_it_aborts(queue, url, jobs):
    async with AsyncMongoClient(url.removeprefix("monque+")) as client, client.start_session() as session:
        async with await session.start_transaction():
            added = await queue.add(1, transaction=session)
            keyed = await queue.add(2, unique=Unique("k"), transaction=session)
            again = await queue.add(3, unique=Unique("k"), transaction=session)
            assert jobs.count_documents({}) == 0
        assert {str(one["_id"]) for one in jobs.find()} == {added.id, keyed.id}
        assert (again.id, again.add_status) == (keyed.id, AddStatus.DUPLICATE)
        await session.start_transaction()
        await queue.add(4, transaction=session)
        await session.abort_transaction()
    assert jobs.count_documents({}) == 2


async def test_only_a_session_of_the_driver_can_carry_a_transaction(queue, jobs):
    with pytest.raises(InvalidOption, match="AsyncClientSession"):
        await queue.add(1, transaction=object())
    assert jobs.count_documents({}) == 0


async def test_a_job_may_have_an_id_of_the_callers_and_is_added_once(queue, jobs):
    chosen = "0123456789abcdef01234567"
    first = await queue.add(1, id=chosen)
    again = await queue.add(2, id=chosen)
    assert (first.id, first.add_status) == (chosen, AddStatus.ADDED)
    assert (again.id, again.add_status) == (chosen, AddStatus.DUPLICATE)
    assert jobs.find_one({"_id": ObjectId(chosen)})["data"] == 1


async def test_in_bulk_only_the_jobs_that_are_not_there_are_added(queue, jobs):
    ids = [f"{number:024x}" for number in range(10)]
    await queue.add_many([NewJob(number, id=ids[number]) for number in (2, 5)])
    added = await queue.add_many([NewJob(number, id=one) for number, one in enumerate(ids)])
    assert [job.add_status is AddStatus.ADDED for job in added] == [number not in (2, 5) for number in range(10)]
    assert jobs.count_documents({}) == 10


@pytest.mark.parametrize("value", ["17", 17, "0123456789ABCDEF01234567"])
async def test_an_id_that_is_no_object_id_is_refused(queue, jobs, value):
    with pytest.raises(InvalidOption) as refusal:
        await queue.add(1, id=value)
    assert refusal.value.field == "id"
    assert jobs.count_documents({}) == 0


async def test_a_given_id_that_another_caller_took_meanwhile_is_a_duplicate(queue, url, jobs):
    """Both look for the id before either has stored its job."""
    chosen = "0123456789abcdef01234567"
    async with Queue(queue.name, url) as other:
        added = await asyncio.gather(*(one.add(n, id=chosen) for n, one in enumerate([queue, other] * 10)))
    assert [job.add_status is AddStatus.ADDED for job in added].count(True) == 1
    [stored] = jobs.find()
    [ours] = [n for n, job in enumerate(added) if job.add_status is AddStatus.ADDED]
    assert stored["data"] == ours


async def test_a_job_of_a_given_id_whose_reply_was_lost_counts_as_added(queue, jobs):
    """The first attempt stores the job and does not hear of it: the second finds a job of the id, which is its own."""
    chosen = "0123456789abcdef01234567"
    store = queue.connection.backend.store
    made = documents(
        queue.name, [prepare(queue.connection.backend, queue.name, NewJob({"n": 1.5}, id=chosen), None)], 17
    )
    adding = Adding(store.jobs, made, {ObjectId(chosen)})
    await adding.attempt()
    adding.answers.clear()
    await adding.attempt()
    assert adding.answers == {0: Added(chosen)}
    assert jobs.count_documents({}) == 1
