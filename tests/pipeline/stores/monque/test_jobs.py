"""Monque jobs as rows, beside what the backend says of the same jobs."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from bson import Binary, Decimal128, Int64, ObjectId

from awaiting import eventually
from jobwire import State, Worker, codec, urls
from jobwire.errors import StoreUnavailable
from jobwire.options import NewJob, Unique
from jobwire.pipeline.stores.boundary import Wanted, list_queues
from jobwire.pipeline.stores.monque import partitions
from jobwire.pipeline.stores.monque.partitions import Partition
from pipeline.stores.reading import everything, jobs_in, mixed_outcomes, opened, sizes

from .conftest import QUEUE

_COMPARED = frozenset({
    "queue", "name", "state", "native_state", "attempts", "attempts_made", "payload", "error", "result", "stacktrace",
    "progress", "created_at", "run_at", "started_at", "finished_at", "worker", "malformed",
})  # fmt: skip


def as_row(job):
    return {
        "queue": QUEUE, "name": QUEUE, "state": job.state.value, "native_state": job.native_state,
        "attempts": job.attempts, "attempts_made": job.attempts_made, "payload": codec.dumps(job.data).decode(),
        "error": job.error, "result": None if job.result is None else codec.dumps(job.result).decode(),
        "stacktrace": job.stacktrace[-1] if job.stacktrace else None,
        "progress": None if job.progress is None else codec.dumps(job.progress).decode(),
        "created_at": job.created_at, "run_at": job.run_at, "started_at": job.started_at,
        "finished_at": job.finished_at, "worker": job.worker, "malformed": None,
    }  # fmt: skip


def as_read(row):
    return {name: value for name, value in row.items() if name in _COMPARED}


@pytest.mark.slow
async def test_ten_thousand_mixed_jobs_are_read_as_the_backend_says(queue, connection, store, capsys):
    far = datetime.now(UTC) + timedelta(days=3)
    texts = ['naïve, "quoted": {x}', "line\nbreak", "", "🚀 🚀", "a\\b"]
    await queue.add_many([NewJob({"n": n, "t": texts[n % 5], "x": [1.5, None, 3e9]}) for n in range(1_500)])
    async with Worker(QUEUE, mixed_outcomes, connection, concurrency=50) as worker:
        await eventually(lambda: worker.stats.completed + worker.stats.failed > 750, within=60)
    added = await queue.add_many([NewJob([n, texts[n % 5]], run_at=far) for n in range(3_500)])
    await connection.backend.cancels.cancel(QUEUE, [job.id for job in added[:500]])
    await queue.add_many([NewJob(n) for n in range(5_000)])

    expected = {key: as_row(job) for key, job in (await everything(queue)).items()}
    found = jobs_in(store, parts=8)
    began = time.perf_counter()
    assert sum(sizes(store, 8)) == len(found)
    took = time.perf_counter() - began
    states = Counter(row["state"] for row in found.values())
    with capsys.disabled():
        print(f"\nMonque: {len(found)} jobs, {len(found) / took:,.0f} rows/s; {dict(states)}")
    assert len(found) == 10_000
    assert {"waiting", "delayed", "completed", "failed", "cancelled"} <= set(states)
    now = datetime.now(UTC)

    def by_now(row):
        """A job that is to be tried again may have come due between the two reads."""
        return {**row, "state": "waiting"} if row["state"] == "delayed" and row["run_at"] <= now else row

    pairs = [(by_now(as_read(found[key])), by_now(row)) for key, row in expected.items()]
    wrong = [pair for pair in pairs if pair[0] != pair[1]]
    assert not wrong, wrong[0]


async def test_slices_are_balanced(queue, store, collection):
    await queue.add_many([NewJob(n) for n in range(6_000)])
    collection.insert_many([{"_id": ObjectId(), "name": "other"} for _ in range(2_000)])
    counts = sizes(store, 4)
    assert len(counts) == 4
    assert sum(counts) == 6_000
    assert max(counts) <= 2_100, counts


async def test_a_small_queue_in_a_large_collection_is_read_by_its_name(queue, store, collection, monkeypatch):
    monkeypatch.setattr(partitions, "_LARGE", 1_000)
    jobs = await queue.add_many([NewJob(n) for n in range(40)])
    collection.insert_many([{"_id": ObjectId(), "name": "other"} for _ in range(4_000)])
    assert list(store.plan_jobs(Wanted(), 8)) == [Partition(by_name=True)]
    assert set(jobs_in(store)) == {job.id for job in jobs}


async def test_ids_of_any_type_are_in_some_slice(queue, store, collection):
    await queue.add_many([NewJob(n) for n in range(3_000)])
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    strange = [7, "by-hand", "0123456789abcdef01234567", {"a": 1}]
    for key in strange:
        collection.insert_one(
            {"_id": key, "name": QUEUE, "data": 1, "status": "pending", "nextRunAt": moment, "failCount": 0}
        )
    found = jobs_in(store)
    assert len(found) == 3_004
    assert found["by-hand"]["malformed"] is None
    for key in ("7", "0123456789abcdef01234567", "{'a': 1}"):
        assert "neither an ObjectId nor another text" in found[key]["malformed"]


async def test_only_what_is_wanted_is_read(queue, connection, store, collection):
    jobs = await queue.add_many([NewJob(n) for n in range(6)])
    ids = [job.id for job in jobs]
    await connection.backend.cancels.cancel(QUEUE, ids[:2])
    old, new = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    collection.update_one({"_id": ObjectId(ids[0])}, {"$set": {"createdAt": old, "updatedAt": old}})

    def read(**wanted):
        return sorted(ids.index(key) for key in jobs_in(store, Wanted(**wanted)))

    assert read() == [0, 1, 2, 3, 4, 5]
    assert read(states=frozenset([State.CANCELLED])) == [0, 1]
    assert read(states=frozenset([State.WAITING])) == [2, 3, 4, 5]
    assert read(states=frozenset()) == []
    assert read(created_before=new) == [0]
    assert read(created_from=new) == [1, 2, 3, 4, 5]
    assert read(created_from=old + timedelta(microseconds=300), created_before=new) == [0]
    assert read(finished_from=new) == [1, 2, 3, 4, 5]
    assert read(finished_before=new) == [0, 2, 3, 4, 5]
    assert read(states=frozenset([State.CANCELLED]), finished_before=new) == [0]
    assert read(names=frozenset(["other"])) == []


async def test_what_only_bson_has_is_shown_as_json_and_kept_as_it_is(queue, store, collection):
    job = await queue.add(1)
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    data = {"when": moment, "n": Int64(2**60), "d": Decimal128("1.10"), "b": Binary(b"\x00\xff"), "nan": float("nan")}
    collection.update_one({"_id": ObjectId(job.id)}, {"$set": {"data": data, "extra": {"keep": [1, moment]}}})
    row = jobs_in(store)[job.id]
    assert row["malformed"] is None
    assert orjson.loads(row["payload"]) == {
        "when": "2026-01-02T03:04:05.678Z", "n": 2**60, "d": "1.10", "b": "AP8=", "nan": None,
    }  # fmt: skip
    raw = orjson.loads(row["raw"])
    assert raw["data"]["d"] == {"$numberDecimal": "1.10"}
    assert raw["extra"]["keep"][1] == {"$date": {"$numberLong": "1767323045678"}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"$set": {"status": "paused"}}, "malformed job: unknown status 'paused' (str)"),
        ({"$set": {"status": 7}}, "malformed job: unknown status 7 (int)"),
        ({"$unset": {"failCount": ""}}, "malformed job: failCount is missing"),
        ({"$set": {"nextRunAt": "soon"}}, "malformed job: nextRunAt is 'soon' (str), not a date"),
        ({"$set": {"failCount": -1}}, "malformed job: failCount is -1 (int), not a count"),
        ({"$set": {"uniqueKey": 5}}, "malformed job: uniqueKey is 5 (int), not a text"),
    ],
)
async def test_documents_that_are_no_jobs_are_told_apart_with_the_reason(queue, store, collection, change, reason):
    sound, odd = await queue.add_many([NewJob(1), NewJob(2)])
    collection.update_one({"_id": ObjectId(odd.id)}, change)
    found = jobs_in(store)
    assert found[odd.id]["malformed"] == reason
    assert found[sound.id]["malformed"] is None


@pytest.mark.slow
async def test_a_job_that_changes_state_while_it_is_read_is_read_once(queue, store, collection):
    jobs = await queue.add_many([NewJob(n, unique=Unique(f"k{n}")) for n in range(12_000)])
    seen: list[str] = []
    for part in store.plan_jobs(Wanted(), 2):
        for batch in store.read_jobs(part, Wanted()):
            seen += batch.column("id").to_pylist()
            collection.update_many({"name": QUEUE}, {"$set": {"status": ("completed", "pending")[len(seen) % 2]}})
    assert sorted(seen) == sorted(job.id for job in jobs)


async def test_queues_are_listed(queue, collection, url):
    await queue.add(1)
    collection.insert_many([{"name": "zebra"}, {"name": "Apple"}, {"name": 7}, {}])
    assert list_queues(urls.parse(url)) == ["Apple", QUEUE, "zebra"]


async def test_an_empty_queue_has_no_rows(queue, url):
    store = opened(url, "nowhere")
    assert jobs_in(store) == {}
    store.close()


def test_a_server_that_is_not_there_is_unavailable():
    with pytest.raises(StoreUnavailable, match=r"MongoDB at monque\+mongodb://u:\*\*\*@127.0.0.1:9"):
        opened("monque+mongodb://u:secret@127.0.0.1:9/x?serverSelectionTimeoutMS=300", QUEUE)
