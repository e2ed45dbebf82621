"""Documents that no worker can run are set aside with their reason; payloads that no document can hold are refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from bson import Binary, DatetimeMS, DBRef, Decimal128, Int64, ObjectId, Regex

from awaiting import eventually
from jobwire.errors import InvalidOption, NotSupported, PayloadTooLarge
from jobwire.model import State
from jobwire.native import MonqueWorker
from jobwire.options import Unique
from jobwire.queue import Queue

MISSING = object()


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"failCount": "three"}, "failCount is 'three' (str), not a count"),
        ({"failCount": float("nan")}, "failCount is nan (float), not a count"),
        ({"failCount": MISSING}, "failCount is missing"),
        ({"name": ["emails"]}, "name is ['emails'] (list), not a text"),
        ({"nextRunAt": "soon"}, "nextRunAt is 'soon' (str), not a date"),
        ({"nextRunAt": MISSING}, "nextRunAt is missing"),
        ({"repeatInterval": 5}, "repeatInterval is 5 (int), not a text"),
    ],
)
async def test_a_malformed_job_fails_with_its_reason_and_the_next_one_is_run(queue, work, peer, odd, reason):
    document = {name: value for name, value in {**peer.fresh("emails", "odd"), **odd}.items() if value is not MISSING}
    key = peer.jobs.insert_one(document).inserted_id
    ran = []

    async def handler(job):
        ran.append(job.data)

    async with work(handler, recover_every=0.1):
        good = await queue.add("good")
        await eventually(lambda: peer.jobs.find_one({"_id": key})["status"] == "failed")
        await eventually(lambda: peer.jobs.find_one({"_id": ObjectId(good.id)})["status"] == "completed")
    assert ran == ["good"]
    assert reason in peer.jobs.find_one({"_id": key})["failReason"]
    job = await queue.get(str(key))
    assert (job.state, reason in job.error) == (State.FAILED, True)


async def test_a_status_that_nobody_knows_is_reported_and_left_alone(queue, work, peer, jobs, caplog):
    key = jobs.insert_one({**peer.fresh("emails", 1), "status": "suspended"}).inserted_id
    with caplog.at_level("INFO", "jobwire"):
        async with work(lambda job: None, recover_every=0.1):
            await eventually(lambda: "unknown status 'suspended'" in caplog.text)
    assert jobs.find_one({"_id": key})["status"] == "suspended"
    job = await queue.get(str(key))
    assert (job.native_state, job.state) == ("suspended", State.FAILED)
    assert "suspended" in job.error


@pytest.mark.parametrize("private", [5, "text", [1], {"claim": 5, "stalls": "many"}])
async def test_a_foreign_value_in_our_own_field_stops_nobody(queue, work, peer, jobs, private):
    job = peer.enqueue("emails", 1, jobwire=private)
    async with work(lambda job: None):
        await eventually(lambda: jobs.find_one({"_id": job["_id"]})["status"] == "completed")
    assert "jobwire" not in jobs.find_one({"_id": job["_id"]})


async def test_ids_that_are_no_object_ids_work_like_others(queue, work, peer, jobs):
    jobs.insert_one({"_id": "by-hand", **peer.fresh("emails", 1)})
    async with work(lambda job: "ran"):
        await eventually(lambda: jobs.find_one({"_id": "by-hand"})["status"] == "completed")
    assert (await queue.get("by-hand")).result == "ran"
    await queue.admin.remove("by-hand")
    assert jobs.count_documents({}) == 0


async def test_what_only_bson_has_is_shown_as_json_and_kept_in_raw(queue, peer):
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    key = ObjectId()
    data = {
        "at": moment, "id": key, "long": Int64(2**40), "whole": 7.0, "dec": Decimal128("1.50"), "raw": Binary(b"ab"),
        "ref": DBRef("users", 1), "like": Regex("a"),
    }  # fmt: skip
    job = await queue.get(str(peer.enqueue("emails", data)["_id"]))
    like = job.data.pop("like")
    assert "Regex" in like or "re.compile" in like
    assert job.data == {
        "at": "2026-01-02T03:04:05.678Z", "id": str(key), "long": 2**40, "whole": 7, "dec": "1.50", "raw": "YWI=",
        "ref": {"$ref": "users", "$id": 1},
    }  # fmt: skip
    assert job.raw["data"]["at"] == moment


async def test_a_date_beyond_the_calendar_and_a_broken_text_can_be_read(queue, work, peer, jobs):
    far = DatetimeMS(9_000_000_000_000_000)
    key = jobs.insert_one({**peer.fresh("emails", {"when": far}), "createdAt": far}).inserted_id
    async with work(lambda job: None):
        await eventually(lambda: jobs.find_one({"_id": key}, {"status": 1})["status"] == "completed")
    job = await queue.get(str(key))
    assert (job.created_at, job.state) == (None, State.COMPLETED)


@pytest.mark.parametrize("value", [{"$set": 1, "a.b": {"$ref": "x", "$id": 2}}, {"$expr": []}])
async def test_keys_that_look_like_operators_are_data(queue, work, jobs, value):
    plain = await queue.add(value)
    keyed = await queue.add(value, unique=Unique("k"))
    for added in (plain, keyed):
        assert (await queue.get(added.id)).data == value


@pytest.mark.parametrize(
    ("value", "path"),
    [({"a": {"b\x00": 1}}, "data.a"), (["\ud800"], "data[0]"), ({"\udfff": 1}, "data")],
    ids=["null in a key", "lone surrogate", "lone surrogate in a key"],
)
async def test_what_bson_can_not_hold_is_refused_with_its_path(queue, jobs, value, path):
    with pytest.raises(InvalidOption) as refusal:
        await queue.add(value)
    assert refusal.value.field == path
    assert jobs.count_documents({}) == 0


async def test_nesting_is_refused_before_the_server_would(queue, jobs):
    def nested(levels):
        value = 1
        for _ in range(levels):
            value = [value]
        return value

    added = await queue.add(nested(90))
    assert (await queue.get(added.id)).data == nested(90)
    with pytest.raises(InvalidOption, match="90 levels"):
        await queue.add(nested(91))
    assert jobs.count_documents({}) == 1


@pytest.mark.slow
async def test_a_document_above_sixteen_megabytes_is_refused_before_the_write_with_both_sizes(connection, jobs):
    async with Queue("emails", connection, size_limit=None) as queue:
        with pytest.raises(PayloadTooLarge, match=re.escape("Job payload size 17.0 MB exceeds limit of 15.8 MB")):
            await queue.add("x" * (17 * 1024 * 1024))
        with pytest.raises(PayloadTooLarge):
            await queue.add([0] * 3_000_000)  # 6 MB of JSON, but 40 MB of BSON
        assert jobs.count_documents({}) == 0
        added = await queue.add("x" * (15 * 1024 * 1024))
        assert len((await queue.get(added.id)).data) == 15 * 1024 * 1024


async def test_a_result_too_large_for_a_document_fails_the_job(queue, work, jobs):
    async with work(lambda job: "x" * (16 * 1024 * 1024)):
        added = await queue.add(1)
        await eventually(lambda: jobs.find_one({"_id": ObjectId(added.id)})["status"] == "failed")
    assert jobs.find_one({"_id": ObjectId(added.id)})["failReason"].startswith("Job result size 16.0 MB exceeds")


async def test_an_error_that_no_document_can_hold_is_stored_as_near_as_can_be(queue, work, jobs):
    async def handler(job):
        raise RuntimeError("half a \ud83d pair, " + "x" * 100_000)

    async with work(handler, native=MonqueWorker(max_retries=1)):
        added = await queue.add(1)
        await eventually(lambda: jobs.find_one({"_id": ObjectId(added.id)})["status"] == "failed")
    reason = jobs.find_one({"_id": ObjectId(added.id)})["failReason"]
    assert reason.startswith("half a ? pair, xxx")
    assert len(reason) < 70_000


async def test_a_result_is_kept_beside_and_not_at_all_when_unwanted(queue, work, jobs):
    side = jobs.database["monque_jobs_jobwire"]
    async with work(lambda job: {"sent": job.data}, native=MonqueWorker(results=False)):
        dropped = await queue.add(1)
        await eventually(lambda: jobs.find_one({"_id": ObjectId(dropped.id)})["status"] == "completed")
    assert side.count_documents({"name": "emails"}) == 0
    async with work(lambda job: {"sent": job.data}):
        kept = await queue.add(2)
        assert await kept.wait(timeout=20) == {"sent": 2}
    assert [one["_id"] for one in side.find({"name": "emails"})] == [ObjectId(kept.id)]


@pytest.mark.parametrize("name", ["two words", "x" * 256, "tab\there", "\x07"])
async def test_a_name_that_the_peer_refuses_is_refused(connection, name):
    with pytest.raises(InvalidOption, match="queue"):
        async with Queue(name, connection):
            pass


@pytest.mark.parametrize("key", ["   ", "x" * 1025, "bell\x07"])
async def test_a_unique_key_that_the_peer_refuses_is_refused(queue, jobs, key):
    with pytest.raises(InvalidOption, match=r"unique\.key"):
        await queue.add(1, unique=Unique(key))
    assert jobs.count_documents({}) == 0


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("max_retry", 3, "did you mean max_retries?"),
        ("max_retries", 0, "at least 1"),
        ("lock_timeout", -1, "at least"),
        ("results", "yes", "True or False"),
        ("instance", "mailer", "Instance"),
    ],
)
def test_a_workers_option_is_checked_by_name_and_value(option, value, words):
    with pytest.raises(InvalidOption, match=re.escape(words)):
        MonqueWorker(**{option: value})


async def test_settings_of_the_instance_stand_in_the_url(url):
    async with Queue("emails", f"{url}&tz=America/New_York&max_retries=3&collection=other") as queue:
        made = await queue.schedule("daily", cron="0 9 * * *")
        assert made.next_run.astimezone(ZoneInfo("America/New_York")).hour == 9
        assert (await queue.get(str(made.raw["_id"]))).attempts == 3
        with pytest.raises(NotSupported, match="tz= in the URL"):
            await queue.schedule("daily", cron="0 9 * * *", tz="Europe/Berlin")
    for bad in ("tz=Mars/Olympus", "max_retries=none", "max_retrie=3"):
        with pytest.raises(InvalidOption):
            Queue("emails", f"{url}&{bad}")
