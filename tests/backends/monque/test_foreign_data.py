"""Whatever another client wrote among the jobs, the queue goes on; whatever is given as an id, it is never a query."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta

import bson
import pytest
from bson import (
    Binary,
    Code,
    DatetimeMS,
    Decimal128,
    Int64,
    MaxKey,
    MinKey,
    ObjectId,
    Regex,
    Timestamp,
)
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pymongo.errors import PyMongoError

from awaiting import eventually
from jobwire.backends.monque import Management, Selector
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.native import MonqueWorker
from jobwire.queue import Queue

from .peer import now

HOUR = timedelta(hours=1)
OPERATORS = [{"$ne": None}, {"$gt": ""}, ["a"], None, 5, b"x"]


# --- ids ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["retry", "promote", "cancel", "remove"])
@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
async def test_what_is_not_an_id_acts_on_no_job(connection, queue, jobs, action, operator):
    await queue.add(1)
    await queue.add(2, delay=60)
    before = list(jobs.find())
    owner = connection.backend.cancels if action == "cancel" else connection.backend
    with pytest.raises(InvalidOption, match="id"):
        await getattr(owner, action)("emails", [operator])
    assert list(jobs.find()) == before


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
async def test_what_is_not_an_id_reads_and_notes_nothing(connection, queue, operator):
    backend = connection.backend
    async with Queue("letters", connection) as other:
        theirs = await other.add(1)
        await backend.logs.log("letters", theirs.id, "a secret", 0)
    for call in (
        backend.logs.logs("emails", operator),
        backend.logs.log("emails", operator, "line", 0),
        backend.progress.update_progress("emails", operator, b"1"),
        backend.get("emails", [operator]),
        backend.schedules.unschedule("emails", operator),
        Management(connection).reschedule(operator, now()),
    ):
        with pytest.raises(InvalidOption):
            await call


async def test_logs_are_read_through_their_own_queue_only(connection, queue):
    added = await queue.add(1)
    logs = connection.backend.logs
    await logs.log("emails", added.id, "a line", 0)
    assert await logs.logs("letters", added.id) == []
    assert await logs.logs("emails", added.id) == ["a line"]


async def test_a_bulk_action_takes_no_operator_for_a_name(connection, queue, jobs):
    await queue.add(1)
    with pytest.raises(InvalidOption, match="name"):
        await Management(connection).cancel_jobs(Selector(name={"$ne": None}))  # type: ignore[arg-type]  # the point
    assert jobs.find_one({})["status"] == "pending"


@pytest.mark.parametrize(
    "key", [{"a": 1}, 1.5, True, None, datetime(2026, 1, 1, tzinfo=UTC), DatetimeMS(2**62), Code("x", {})], ids=repr
)
@pytest.mark.parametrize("concurrency", [1, 5])
async def test_an_id_that_no_worker_can_hold_fails_its_job_and_no_other(queue, work, peer, jobs, *, key, concurrency):
    jobs.insert_one({"_id": key, **peer.fresh("emails", "odd")})
    async with work(lambda job: None, recover_every=0.1, concurrency=concurrency):
        good = await queue.add("good")
        await good.wait(timeout=20)
        await eventually(lambda: jobs.count_documents({"_id": {"$eq": key}, "status": "failed"}) == 1)
    assert "_id is" in jobs.find_one({"status": "failed"}, {"failReason": 1, "_id": 0})["failReason"]
    [shown] = await queue.jobs(State.FAILED)
    assert "_id is" in shown.error
    assert (await queue.counts())[State.FAILED] == 1


@pytest.mark.parametrize("field", ["name", "status", "repeatInterval"])
async def test_code_in_the_place_of_a_text_hides_no_other_job(*, connection, queue, work, peer, jobs, field):
    jobs.insert_one(peer.fresh("emails", "odd") | {"repeatInterval": "@daily", field: Code("x")})
    good = await queue.add("good")
    assert (await queue.counts())[State.WAITING] >= 1
    assert await connection.queues() == ["emails"]
    [figures] = (await connection.figures(["emails"], most=10, since=now() - HOUR)).queues
    assert figures.turnover.added >= 1
    assert len(await queue.schedules()) <= 1
    assert good.id in [job.id for job in await queue.jobs()]
    async with work(lambda job: None):
        await good.wait(timeout=20)


async def test_an_id_that_is_not_utf8_fails_its_job_and_no_other(queue, work, peer, jobs):
    odd = bson.encode({"_id": "abcd", **peer.fresh("emails", "odd")}).replace(b"abcd", b"ab\xff\xfe")
    jobs.insert_one(RawBSONDocument(odd))
    async with work(lambda job: None, recover_every=0.1):
        good = await queue.add("good")
        await good.wait(timeout=20)
        await eventually(lambda: jobs.count_documents({"status": "failed"}) == 1)
    assert jobs.find_one({"status": "failed"}, {"_id": 0})["failReason"] == "malformed job: _id is not valid UTF-8"


async def test_events_go_on_after_a_job_whose_place_the_server_can_not_read_again(connection, queue, peer, jobs):
    stream = connection.backend.events
    events = stream.events("emails", await stream.cursor("emails"))
    jobs.insert_one({"_id": 1.5, **peer.fresh("emails", 1)})
    added = [await anext(events), await anext(events)]
    await events.aclose()
    assert [event.native_type for event in added] == ["added", "waiting"]
    jobs.insert_one({"_id": "next", **peer.fresh("emails", 2)})
    again = stream.events("emails", added[-1].id)
    async with asyncio.timeout(20):
        assert [(await anext(again)).job_id, (await anext(again)).native_type] == ["next", "waiting"]
    await again.aclose()


# --- recovery -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd",
    [
        {"heartbeatInterval": 1e308},
        {"heartbeatInterval": Int64(2**63 - 1)},
        {"heartbeatInterval": float("nan")},
        {"heartbeatInterval": float("-inf")},
        {"heartbeatInterval": Decimal128("9E6000")},
        {"heartbeatInterval": "often"},
        {"lastHeartbeat": "never"},
        {"lockedAt": [datetime(2026, 1, 1, tzinfo=UTC)]},
        {"lockedAt": DatetimeMS(-(2**62))},
        {"jobwire": {"stalls": Int64(2**63 - 1)}},
        {"jobwire": {"by": "dead", "until": "later"}},
        {"jobwire": [{"by": "dead"}]},
    ],
    ids=repr,
)
async def test_one_absurd_field_disables_recovery_for_nobody(queue, work, peer, jobs, odd):
    dead = {"status": "processing", "claimedBy": "dead", "lockedAt": now() - HOUR, "updatedAt": now() - HOUR}
    jobs.insert_one({**peer.fresh("emails", "odd"), **dead, **odd})
    good = jobs.insert_one({**peer.fresh("emails", "good"), **dead}).inserted_id
    async with work(lambda job: None, recover_every=0.1, max_stalled=5):
        await eventually(lambda: jobs.find_one({"_id": good})["status"] == "completed")
        await eventually(lambda: jobs.count_documents({"status": {"$in": ["completed", "failed"]}}) == 2)


@pytest.mark.parametrize("locked", [{"lockedAt": now() - HOUR}, {"updatedAt": now() - HOUR}], ids=["locked", "no lock"])
async def test_a_running_job_without_an_owner_is_taken_back_when_it_is_old(queue, work, peer, jobs, locked):
    old = jobs.insert_one({**peer.fresh("emails", 1), "status": "processing", **locked}).inserted_id
    young = jobs.insert_one({**peer.fresh("emails", 2), "status": "processing", "lockedAt": now()}).inserted_id
    async with work(lambda job: None, recover_every=0.1):
        await eventually(lambda: jobs.find_one({"_id": old})["status"] == "completed")
    assert jobs.find_one({"_id": young})["status"] == "processing"


async def test_a_job_without_data_runs_with_none(queue, work, peer, jobs):
    document = peer.fresh("emails", 1)
    del document["data"]
    key = jobs.insert_one(document).inserted_id
    async with work(lambda job: [job.data]):
        await eventually(lambda: jobs.find_one({"_id": key})["status"] == "completed")
    assert (await queue.get(str(key))).result == [None]


async def test_counts_beyond_what_fits_fail_their_job_when_it_fails(queue, work, peer, jobs):
    keys = [
        jobs.insert_one({**peer.fresh("emails", 1), "failCount": count}).inserted_id
        for count in (Int64(2**63 - 1), 1e300, 2**31 - 1)
    ]

    async def handler(job):
        raise RuntimeError("as always")

    async with work(handler):
        await eventually(lambda: jobs.count_documents({"_id": {"$in": keys}, "status": "failed"}) == 3)
    assert {one["failReason"] for one in jobs.find()} == {"as always"}


# --- anything at all ------------------------------------------------------------------------------------------------


class Huge(str):
    """A long text that is shown in short."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Huge(…)"


dates = st.integers(-(2**63), 2**63 - 1).map(DatetimeMS) | st.datetimes(timezones=st.just(UTC))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.integers(-(2**63), 2**63 - 1).map(Int64)
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=20)
    | st.binary(max_size=20)
    | dates
    | st.sampled_from(
        [
            MinKey(), MaxKey(), Regex("a.*"), Code("x"), Code("x", {"y": 1}), Timestamp(1, 1), Decimal128("NaN"),
            Decimal128("9E6144"), ObjectId("0" * 24), Binary(b"\x00" * 16, 4), Huge("x" * 100_000), "pending",
            "processing", "* * * * *", "@daily", "61 * * * *",
        ]
    )
)  # fmt: skip
keys = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8) | st.sampled_from(
    ["$ref", "$id", "claim", "by", "at", "until", "stalls", "$expr"]
)


def _deep(value: object) -> object:
    for _ in range(80):
        value = {"d": [value]}
    return value


anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
) | scalars.map(_deep)
FIELDS = [
    "data", "status", "nextRunAt", "failCount", "createdAt", "updatedAt", "repeatInterval", "failReason", "claimedBy",
    "lockedAt", "lastHeartbeat", "heartbeatInterval", "jobwire", "extra",
]  # fmt: skip
ids = st.builds(ObjectId) | scalars | st.dictionaries(st.sampled_from("abc"), scalars, max_size=2)


@st.composite
def documents(draw):
    """A good job in which up to four fields are something else, or missing."""
    document = {
        "_id": draw(ids), "name": "emails", "data": None, "status": draw(st.sampled_from(["pending", "processing"])),
        "nextRunAt": now(), "failCount": 0, "createdAt": now(), "updatedAt": now() - HOUR,
    }  # fmt: skip
    if document["status"] == "processing":
        document |= {"claimedBy": "dead", "lockedAt": now() - HOUR, "heartbeatInterval": 30_000}
    for field in draw(st.lists(st.sampled_from(FIELDS), max_size=4, unique=True)):
        if draw(st.booleans()):
            document[field] = draw(anything)
        else:
            document.pop(field, None)
    return document


@pytest.mark.slow
@settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example takes seconds: shrinking it would take an hour
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(odd=st.lists(documents(), min_size=10, max_size=36))
async def test_good_jobs_complete_among_documents_of_any_shape(connection, queue, work, jobs, *, caplog, odd):
    jobs.delete_many({})
    caplog.clear()
    stored = 0
    for document in odd:
        try:
            jobs.insert_one(document)
        except (PyMongoError, BSONError):  # some can't be stored
            continue
        stored += 1
    with caplog.at_level(logging.INFO, "jobwire"):
        native = MonqueWorker(max_retries=2)
        async with work(lambda job: job.data, recover_every=0.1, concurrency=3, max_stalled=3, native=native) as worker:
            good = [await queue.add({"n": n}) for n in range(6)]
            results = await asyncio.gather(*(one.wait(timeout=30) for one in good))
            assert worker.running
            calls, cpu = worker.stats.calls, time.process_time()
            await asyncio.sleep(0.5)
            assert time.process_time() - cpu < 0.4
            assert worker.stats.calls - calls < 40
            assert worker.running
    assert results == [{"n": n} for n in range(6)]
    await queue.counts()
    for state in (State.WAITING, State.FAILED, State.COMPLETED, State.ACTIVE, State.DELAYED):
        await queue.jobs(state)
    await Management(connection).queue_views()
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) <= stored + 5, caplog.text
    failed = {"status": "failed", "updatedAt": {"$gt": now() - HOUR / 2}}
    reasons = [one["failReason"] for one in jobs.find(failed, {"failReason": 1, "_id": 0})]
    assert all(isinstance(reason, str) and reason for reason in reasons)
