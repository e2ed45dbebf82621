"""Finished Monque jobs leave the store only as they were archived, and come back as they were."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from bson import Binary, Int64, ObjectId

from awaiting import eventually
from jobwire import InvalidOption, State, Unrecoverable, Worker
from jobwire.options import NewJob, Unique
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.boundary import Stamp, Wanted
from jobwire.pipeline.stores.monque import purge
from jobwire.pipeline.stores.monque.dialect import DIALECT
from pipeline.stores.reading import jobs_in, stamp

from .conftest import QUEUE

FINISHED = Wanted(states=frozenset(state for state in State if state.finished))


@pytest.fixture
async def finished(queue, connection, collection):
    """Jobs that completed, failed and were cancelled, with all that a job can have."""

    async def handler(job):
        await job.update_progress(job.data["n"])
        await job.log("a line")
        if job.data["n"] % 3 == 0:
            raise Unrecoverable("kaputt ✂")
        return [None, {"n": job.data["n"]}, "text", 7][job.data["n"] % 4]

    added = await queue.add_many([NewJob({"n": n, "t": 'é\n"x"'}) for n in range(12)])
    async with Worker(QUEUE, handler, connection) as worker:
        await eventually(lambda: worker.stats.completed + worker.stats.failed == 12)
    gone = await queue.add("never", unique=Unique("k"))
    await queue.cancel(gone.id)
    odd = {"when": datetime(2026, 1, 1, tzinfo=UTC), "n": Int64(7), "b": Binary(b"\x00")}
    change = {"data": odd, "extra": {"keep": [1, Int64(2), None]}, "big": Int64(1)}
    collection.update_one({"_id": ObjectId(gone.id)}, {"$set": change})
    return [*(job.id for job in added), gone.id]


def batch_of(rows) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=JOBS.arrow)


async def test_purged_jobs_are_gone_with_all_that_belonged_to_them(finished, store, collection):
    rows = jobs_in(store, FINISHED)
    purged = store.purge([stamp(rows[key]) for key in finished])
    assert (list(purged.removed), list(purged.kept)) == (finished, [])
    assert collection.count_documents({}) == 0
    assert collection.database["monque_jobs_jobwire"].count_documents({"_id": {"$ne": "jobwire:version"}}) == 0


async def test_only_what_is_as_it_was_is_purged(finished, store, queue, collection):
    rows = jobs_in(store, FINISHED)
    retried, touched, restated, missing, same = finished[0], finished[1], finished[2], str(ObjectId()), finished[4]
    await queue.admin.retry(retried)
    collection.update_one({"_id": ObjectId(touched)}, {"$set": {"note": 1}})
    stamps = [stamp(rows[key]) for key in (retried, touched)]
    stamps += [Stamp(restated, "failed", rows[restated]["fingerprint"]), Stamp(missing, "failed", "1")]
    purged = store.purge([*stamps, Stamp("x", "pending", "1"), stamp(rows[same])])
    assert list(purged.removed) == [same]
    assert list(purged.kept) == [retried, touched, restated, missing, "x"]
    assert set(jobs_in(store)) == set(finished) - {same}


async def test_a_job_that_is_retried_between_the_look_and_the_delete_survives(finished, store, collection, monkeypatch):
    rows = jobs_in(store, FINISHED)
    looked = purge.fingerprint

    def retried_meanwhile(stored):
        found = looked(stored)
        if found == rows[finished[0]]["fingerprint"]:
            collection.update_one({"_id": ObjectId(finished[0])}, {"$set": {"status": "pending"}})
        return found

    monkeypatch.setattr(purge, "fingerprint", retried_meanwhile)
    purged = store.purge([stamp(rows[key]) for key in finished])
    assert list(purged.kept) == [finished[0]]
    assert set(jobs_in(store)) == {finished[0]}


async def test_what_is_put_back_is_as_it_was_to_the_last_field(finished, store, collection):
    documents = {one["_id"]: one for one in collection.find()}
    rows = jobs_in(store, FINISHED)
    store.purge([stamp(row) for row in rows.values()])
    assert store.put_finished(batch_of(rows.values())) == 13
    assert {one["_id"]: one for one in collection.find()} == documents
    again = jobs_in(store, FINISHED)
    for row in (*rows.values(), *again.values()):
        del row["fingerprint"]  # fields may come in another order
    assert again == rows
    assert store.put_finished(batch_of(rows.values())) == 0


async def test_jobs_of_another_store_come_in_under_ids_of_their_own(queue, store):
    moment = datetime(2026, 3, 4, 5, 6, 7, 891000, tzinfo=UTC)
    foreign = {
        **dict.fromkeys(JOBS.names), "store": "bullmq+redis://x", "queue": "q", "name": "q", "priority": 3,
        "attempts": 5, "attempts_made": 2, "payload": '{"a":1}', "created_at": moment, "finished_at": moment,
        "raw": '{"opts":{"delay":5}}', "unique_key": "k", "worker": "w", "started_at": moment, "progress": "50",
    }  # fmt: skip
    jobs = [
        {**foreign, "id": "17", "state": "completed", "result": "[1]"},
        {**foreign, "id": "mail:x", "state": "failed", "error": "kaputt", "stacktrace": "Error: kaputt\n at x"},
    ]
    assert store.put_finished(batch_of(jobs)) == 2
    assert store.put_finished(batch_of(jobs)) == 0
    done = await queue.get(DIALECT.native_id("17"))
    assert (done.state, done.data, done.result, done.attempts_made) == (State.COMPLETED, {"a": 1}, [1], 2)
    assert (done.created_at, done.finished_at, done.started_at, done.worker) == (moment, moment, moment, "w")
    assert done.progress == 50
    failed = await queue.get(DIALECT.native_id("mail:x"))
    assert (failed.error, failed.stacktrace, failed.attempts_made) == ("kaputt", ("Error: kaputt\n at x",), 2)


async def test_a_job_that_has_not_finished_is_not_put(queue, store):
    await queue.add(1)
    [row] = jobs_in(store).values()
    with pytest.raises(InvalidOption, match="must be finished and sound"):
        store.put_finished(batch_of([row]))


async def test_ids_are_present_or_not(queue, store):
    job = await queue.add(1)
    assert set(store.present([job.id, str(ObjectId()), "x"])) == {job.id}
