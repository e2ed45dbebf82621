"""What happens to Monque jobs: by the change stream of a replica set, by looking again on a lone server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import socket

from bson import ObjectId
from pymongo import MongoClient

from awaiting import eventually
from jobwire import Queue, Unrecoverable, Worker
from jobwire.embedded import binaries
from jobwire.native import MonqueWorker
from jobwire.options import NewJob
from pipeline.stores.reading import events_between, kinds, news, opened

from .conftest import QUEUE


async def work(connection, handler, count, **options):
    async with Worker(QUEUE, handler, connection, **options) as worker:
        await eventually(lambda: worker.stats.completed + worker.stats.failed + worker.stats.retried >= count)


async def fail_or_not(job):
    if job.data == "bad":
        raise Unrecoverable("no such address")
    if job.data == "busy":
        raise ValueError("busy")


async def test_changes_tell_of_a_life_from_its_beginning_to_its_end(queue, connection, store):
    _, start = news(store, store.first_offset())
    jobs = await queue.add_many([NewJob("good"), NewJob("bad"), NewJob("dropped", delay=3600)])
    good, bad, dropped = (job.id for job in jobs)
    await work(connection, fail_or_not, 2)
    await queue.cancel(dropped)
    told, end = news(store, start)
    assert kinds(told, good) == ["added", "active", "completed"]
    assert kinds(told, bad) == ["added", "active", "failed"]
    assert kinds(told, dropped) == ["added", "cancelled"]
    [failed] = [one for one in told if one["kind"] == "failed"]
    assert json.loads(failed["data"]) == {"error": "no such address"}
    assert failed["at"] == (await queue.get(bad)).finished_at
    [active] = [one for one in told if one["kind"] == "active" and one["job_id"] == good]
    assert json.loads(active["data"])["worker"]
    assert len(told) == len({one["id"] for one in told})
    assert store.passed(end, start)
    assert not store.passed(start, end)


async def test_the_first_batch_tells_of_the_jobs_that_are_there(queue, connection, store):
    jobs = await queue.add_many([NewJob("good"), NewJob("bad"), NewJob("later", delay=3600)])
    good, bad, later = (job.id for job in jobs)
    await work(connection, fail_or_not, 2)
    told, _ = news(store, store.first_offset())
    assert kinds(told, good) == ["added", "completed"]
    assert kinds(told, bad) == ["added", "active", "failed"]
    assert kinds(told, later) == ["added"]
    [added] = [one for one in told if one["job_id"] == later]
    due = (await queue.get(later)).run_at
    assert json.loads(added["data"])["due"] == due.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_the_first_batch_has_the_attempts_that_our_workers_have_recorded(queue, connection, store):
    async def handler(job):
        if job.attempts_made < 2:
            raise ValueError(f"busy {job.attempts_made}")
        return {"sent": True}

    _, start = news(store, store.first_offset())
    job = await queue.add(1)
    await work(connection, handler, 3, native=MonqueWorker(max_retries=3, base_retry_interval=0.01))

    told, _ = news(store, store.first_offset())
    changed, _ = news(store, start)

    assert kinds(told, job.id) == ["added", *["active", "retried"] * 2, "active", "completed"]
    assert {one["id"] for one in told} == {one["id"] for one in changed}
    retried = [json.loads(one["data"]) for one in told if one["kind"] == "retried"]
    assert [one["error"] for one in retried] == ["ValueError: busy 0", "ValueError: busy 1"]
    assert [one["due"] for one in retried] == [
        json.loads(one["data"])["due"] for one in changed if one["kind"] == "retried"
    ]


async def test_both_ways_give_an_event_the_same_id(queue, connection, store):
    _, start = news(store, store.first_offset())
    await queue.add_many([NewJob("good"), NewJob("bad"), NewJob("busy"), NewJob("later", delay=3600)])
    await work(connection, fail_or_not, 3)
    changed, _ = news(store, start)
    standing, _ = news(store, store.first_offset())
    assert {one["id"] for one in standing} < {one["id"] for one in changed}
    assert "retried" in {one["kind"] for one in standing}


async def test_a_retry_that_fails_with_the_same_words_is_told(queue, connection, store, collection):
    _, start = news(store, store.first_offset())
    job = await queue.add("busy")
    await work(connection, fail_or_not, 2, native=MonqueWorker(base_retry_interval=0))
    told, _ = news(store, start)
    assert kinds(told, job.id) == ["added", "active", "retried", "active", "failed"]


async def test_a_running_job_is_told_at_its_claim_however_often_its_heart_has_beaten(
    queue, connection, store, collection
):
    _, start = news(store, store.first_offset())
    job = await queue.add("good")
    told = []

    async def handler(active):
        before = collection.find_one({"_id": ObjectId(active.id)})["lastHeartbeat"]
        await eventually(lambda: collection.find_one({"_id": ObjectId(active.id)})["lastHeartbeat"] > before)
        both = (news(store, first)[0] for first in (store.first_offset(), start))
        told.extend([one["id"] for one in events if one["kind"] == "active"] for events in both)

    await work(connection, handler, 1, lease=0.6)
    assert len(told[0]) == 1
    assert told[0] == told[1]
    assert told[0][0].startswith(f"{job.id}:active:")


async def test_a_recurring_job_completes_and_is_due_again(queue, connection, store, collection):
    _, start = news(store, store.first_offset())
    await queue.schedule("hourly", cron="0 * * * *", data="good")
    [document] = collection.find({"name": QUEUE})
    collection.update_one({"_id": document["_id"]}, {"$set": {"nextRunAt": document["createdAt"]}})
    await work(connection, fail_or_not, 1)
    told, _ = news(store, start)
    assert kinds(told, str(document["_id"])) == ["added", "rescheduled", "active", "completed", "delayed"]


async def test_nothing_new_leaves_the_offset_where_it_is(queue, store, collection):
    _, start = news(store, store.first_offset())
    collection.database["elsewhere"].insert_one({"x": 1})
    assert store.latest_offset(start, None) == start
    await queue.add(1)
    end = store.latest_offset(start, None)
    assert end != start
    assert store.latest_offset(end, None) == end


async def test_a_stretch_ends_though_nothing_more_happens(queue, store):
    _, start = news(store, store.first_offset())
    for n in range(3):
        await queue.add(n)
        end = store.latest_offset(start, None)
        assert [one["kind"] for one in events_between(store, start, end)] == ["added"]
        start = end


async def test_a_stretch_leaves_out_what_came_after_it(queue, store):
    _, start = news(store, store.first_offset())
    first = await queue.add(1)
    end = store.latest_offset(start, None)
    second = await queue.add(2)
    assert [one["job_id"] for one in events_between(store, start, end)] == [first.id]
    assert [one["job_id"] for one in news(store, end)[0]] == [second.id]


async def test_a_bounded_ingest_goes_on_until_everything_is_told(queue, store):
    _, start = news(store, store.first_offset())
    jobs = [await queue.add(n) for n in range(40)]
    target = store.latest_offset(start, None)
    told, batches = [], 0
    while not store.passed(start, target):
        end = store.latest_offset(start, 10)
        told += events_between(store, start, end)
        if end == start:
            break
        start, batches = end, batches + 1
    assert batches >= 4
    assert [one["job_id"] for one in told] == [job.id for job in jobs]


async def test_other_queues_and_lost_names_stay_out(queue, connection, store, collection):
    _, start = news(store, store.first_offset())
    async with Queue("other", connection) as other:
        stranger = await other.add(1)
        await other.cancel(stranger.id)
        ours = await queue.add(2)
        await queue.cancel(ours.id)
        collection.delete_many({})
    told, _ = news(store, start)
    assert {one["job_id"] for one in told} == {ours.id}
    assert [one["kind"] for one in told] == ["added", "cancelled", "removed"]


async def test_a_job_that_ran_and_was_removed_between_two_reads_is_told_of(queue, connection, store, collection):
    async with Queue("other", connection) as other:
        stranger = await other.add(1)
        job = await queue.add("good")
        _, start = news(store, store.first_offset())
        await work(connection, fail_or_not, 1)
        await other.cancel(stranger.id)
        collection.delete_many({})

    told, _ = news(store, start)

    assert [(one["job_id"], one["kind"]) for one in told] == [
        (job.id, kind) for kind in ("active", "completed", "removed")
    ]


async def test_a_removed_job_whose_queue_can_not_be_found_leaves_a_gap(queue, store, collection):
    unknown = ObjectId.from_datetime(datetime.now(UTC) + timedelta(days=1))  # not the time at which it is added
    collection.insert_one({**_fresh(), "_id": unknown})
    _, start = news(store, store.first_offset())
    collection.update_one({"_id": unknown}, {"$set": {"status": "cancelled"}})
    collection.delete_one({"_id": unknown})

    told, _ = news(store, start)

    assert [(one["job_id"], one["kind"]) for one in told] == [(None, "gap")]


async def test_a_transaction_is_told_whole(queue, store, collection):
    _, start = news(store, store.first_offset())
    client = collection.database.client
    with client.start_session() as session, session.start_transaction():
        documents = [{**_fresh(), "_id": ObjectId()} for _ in range(5)]
        collection.insert_many(documents, session=session)
    end = store.latest_offset(start, 2)
    assert len(events_between(store, start, end)) == 5


def _fresh():
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return {
        "name": QUEUE, "data": 1, "status": "pending", "nextRunAt": moment, "failCount": 0, "createdAt": moment,
        "updatedAt": moment,
    }  # fmt: skip


async def test_malformed_documents_are_told_of_with_the_reason(queue, store, collection):
    collection.insert_one({**_fresh(), "status": "paused"})
    collection.insert_one({**_fresh(), "createdAt": "yesterday"})
    told, _ = news(store, store.first_offset())
    assert sorted(one["malformed"] for one in told) == [
        "its createdAt and updatedAt are not both dates",
        "malformed job: unknown status 'paused' (str)",
    ]


@contextmanager
def mongod(folder: Path, *options: str) -> Iterator[str]:
    """A server of the test's own, that is no replica set unless told so."""
    with closing(socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(binaries.MONGO.find()), "--dbpath", str(folder), "--port", str(port), "--bind_ip", "127.0.0.1"]
    quiet = ["--nounixsocket", "--wiredTigerCacheSizeGB", "0.25"]
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([*command, *quiet, *options], stdout=log, stderr=log)
    try:
        yield f"mongodb://127.0.0.1:{port}/test?directConnection=true&serverSelectionTimeoutMS=30000"
    finally:
        process.terminate()
        process.wait(30)


async def test_changes_that_the_server_dropped_are_a_gap_and_the_jobs_are_told_of_again(tmp_path):
    with (
        mongod(tmp_path, "--replSet", "rs", "--oplogSize", "1", "--syncdelay", "1") as server,
        MongoClient(server) as client,
    ):
        client.admin.command("replSetInitiate")
        await eventually(lambda: client.admin.command("hello")["isWritablePrimary"])
        async with Queue(QUEUE, f"monque+{server}") as queue:
            jobs = await queue.add_many([NewJob(n) for n in range(3)])
        with closing(opened(f"monque+{server}", QUEUE)) as store:
            _, start = news(store, store.first_offset())

            def dropped():
                client.test.noise.insert_many([{"x": "x" * 100_000} for _ in range(50)])
                oldest = client.local.oplog.rs.find_one(sort=[("$natural", 1)])["ts"]
                return (oldest.time, oldest.inc) > (start["t"], start["i"])

            await eventually(dropped, within=60)
            end = store.latest_offset(start, None)
            gap, *rest = events_between(store, start, end)
            assert gap["kind"] == "gap"
            assert json.loads(gap["data"]) == {"after": start["t"] * 1000, "before": end["t"] * 1000}
            assert {one["job_id"] for one in rest} == {job.id for job in jobs}
            late = client.test.monque_jobs.insert_one(_fresh()).inserted_id
            assert [one["job_id"] for one in news(store, end)[0]] == [str(late)]


async def test_a_lone_server_is_looked_at_again_with_an_overlap(tmp_path):
    with mongod(tmp_path) as server, MongoClient(server, tz_aware=True) as client:
        async with Queue(QUEUE, f"monque+{server}") as queue:
            first = await queue.add("first")
            with closing(opened(f"monque+{server}", QUEUE)) as store:
                told, start = news(store, store.first_offset())
                assert kinds(told, first.id) == ["added"]
                assert store.latest_offset(start, None) == start
                moment = client.test.monque_jobs.find_one()["updatedAt"]
                behind = {**_fresh(), "createdAt": moment, "updatedAt": moment - timedelta(seconds=30)}
                skewed = client.test.monque_jobs.insert_one(behind).inserted_id
                await eventually(lambda: datetime.now(UTC) > moment + timedelta(milliseconds=2))
                await queue.cancel(first.id)
                told, end = news(store, start)
                assert kinds(told, first.id) == ["added", "cancelled"]
                assert kinds(told, str(skewed)) == ["added"]
                assert store.passed(end, start)
                assert not store.passed(start, end)


async def test_a_clock_of_the_future_does_not_hide_the_present_on_a_lone_server(tmp_path):
    with mongod(tmp_path) as server, MongoClient(server) as client:
        client.test.monque_jobs.insert_one({**_fresh(), "updatedAt": datetime(2200, 1, 1, tzinfo=UTC)})
        async with Queue(QUEUE, f"monque+{server}") as queue:
            with closing(opened(f"monque+{server}", QUEUE)) as store:
                assert store.latest_offset(store.first_offset(), None) == store.first_offset()
                jobs = [await queue.add(n) for n in range(5)]
                told, end = news(store, store.first_offset())
                assert {one["job_id"] for one in told} == {job.id for job in jobs}
                assert store.latest_offset(store.first_offset(), 2)["at"] <= end["at"]
