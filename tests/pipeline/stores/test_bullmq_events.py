"""A BullMQ queue's event stream as rows: every event once, and what was trimmed unread as a gap."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.options import NewJob
from jobwire.urls import parse

from .redis_rig import QUEUE, STORE, Rig, Row, rig_at


@pytest.fixture
async def rig(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bullmq")) as rig:
        yield rig


@pytest.fixture
def keys(rig: Rig) -> Keys:
    return Keys(parse(rig.url).options["prefix"], QUEUE)


def told(rows: list[Row]) -> list[tuple[str, str | None, dict[str, Any]]]:
    return [(row["kind"], row["job_id"], json.loads(row["data"])) for row in rows]


def kinds(rows: list[Row]) -> list[str]:
    return [row["kind"] for row in rows]


async def test_a_jobs_life_is_told_in_order_with_the_protocols_own_words(rig: Rig) -> None:
    await rig.add(NewJob({"to": "zoë"}, id="a", name="welcome"))
    await rig.complete(1, b'{"sent":true}')
    rows = rig.events()
    assert told(rows)[:4] == [
        ("added", "a", {"name": "welcome"}),
        ("waiting", "a", {}),
        ("active", "a", {"prev": "waiting"}),
        ("completed", "a", {"returnvalue": '{"sent":true}', "prev": "active"}),
    ]
    assert {(row["store"], row["queue"], row["malformed"]) for row in rows} == {(STORE, QUEUE, None)}


async def test_an_event_has_the_id_and_the_time_of_its_entry(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    redis_client.xadd(keys.events, {"event": "added", "jobId": "1"}, id="1700000000123-4")
    (row,) = rig.events()
    assert row["id"] == "1700000000123-4"
    assert row["at"] == datetime.fromtimestamp(1_700_000_000.123, UTC)


async def test_a_queue_without_events_has_nothing_to_read(rig: Rig) -> None:
    first = rig.store.first_offset()
    assert rig.store.latest_offset(first, 10) == first
    assert rig.events() == []


async def test_batches_of_bounded_size_bring_every_event_once(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(100)))
    offset, seen = rig.store.first_offset(), list[str]()
    while (latest := rig.store.latest_offset(offset, 30)) != offset:
        some = rig.events(offset, latest)
        assert len(some) <= 30
        seen += [row["id"] for row in some]
        offset = latest
    assert len(seen) == len(set(seen)) == 200
    assert offset["n"] == 200
    assert rig.events(offset) == []


async def test_an_offset_has_been_passed_when_nothing_lies_between(rig: Rig) -> None:
    await rig.add(NewJob(1), NewJob(2))
    first = rig.store.first_offset()
    middle, last = rig.store.latest_offset(first, 2), rig.store.latest_offset(first, None)
    assert not rig.store.passed(first, last)
    assert not rig.store.passed(middle, last)
    assert rig.store.passed(last, last)
    assert rig.store.passed(last, middle)


async def test_many_events_are_divided_into_slices_that_miss_none(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    with redis_client.pipeline(transaction=False) as pipeline:
        for n in range(30_000):
            event = {"event": "completed", "jobId": str(n), "returnvalue": '{"sent":true}', "prev": "active"}
            pipeline.xadd(keys.events, event, id=f"{1_700_000_000_000 + n // 3}-{n % 3 + 1}")
        pipeline.execute()
    first = rig.store.first_offset()
    parts = rig.store.plan_events(first, rig.store.latest_offset(first, None))
    assert len(parts) == 4
    begun, cpu = time.perf_counter(), time.process_time()
    read = [batch for part in parts for batch in rig.store.read_events(part)]
    took, worked = time.perf_counter() - begun, time.process_time() - cpu
    print(f"\nBullMQ events: {30_000 / took:,.0f} rows/s, {30_000 / worked:,.0f} per core")
    assert [int(job_id) for batch in read for job_id in batch.column("job_id").to_pylist()] == list(range(30_000))


async def test_an_entry_that_can_not_be_read_is_a_row_with_the_reason(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    redis_client.xadd(keys.events, {"event": b"caf\xe9"})
    redis_client.xadd(keys.events, {"jobId": "7"})
    redis_client.xadd(keys.events, {"event": "my own", "jobId": "8", "ключ": "🐘"})
    broken, nameless, sound = rig.events()
    assert broken["malformed"] == "it holds bytes that are not UTF-8"
    assert json.loads(broken["data"]) == ["event", "caf\\xe9"]
    assert (nameless["malformed"], nameless["job_id"]) == ("it has no field `event`", "7")
    assert told([sound]) == [("my own", "8", {"ключ": "🐘"})]


# --- gaps -----------------------------------------------------------------------------------------------------------


def gap_of(rows: list[Row]) -> Mapping[str, Any]:
    (gap,) = [row for row in rows if row["kind"] == "gap"]
    assert rows[0] is gap
    return {"id": gap["id"], **json.loads(gap["data"])}


async def test_events_trimmed_unread_are_told_as_a_gap_with_their_number(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    start = rig.store.latest_offset(rig.store.first_offset(), 5)
    await rig.add(*(NewJob(n) for n in range(10)))
    redis_client.xtrim(keys.events, maxlen=12, approximate=False)
    first = redis_client.xrange(keys.events, count=1)[0][0]
    rows = rig.events(start)
    assert gap_of(rows) == {"id": f"gap:{start['id']}", "after": start["id"], "before": first, "lost": 40 - 5 - 12}
    assert len(rows) == 1 + 12
    assert rig.events(start) == rows


async def test_the_first_look_at_a_trimmed_stream_is_a_gap_with_its_number(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    redis_client.xtrim(keys.events, maxlen=3, approximate=False)
    first = redis_client.xrange(keys.events, count=1)[0][0]

    rows = rig.events()

    assert gap_of(rows) == {"id": "gap:0-0", "after": "0-0", "before": first, "lost": 20 - 3}
    assert len(rows) == 1 + 3


async def test_trimming_what_was_read_is_no_gap(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    start = rig.store.latest_offset(rig.store.first_offset(), 15)
    redis_client.xtrim(keys.events, maxlen=5, approximate=False)
    assert kinds(rig.events(start)) == ["waiting", "added", "waiting", "added", "waiting"]


async def test_a_stream_trimmed_to_nothing_is_a_gap_to_its_end(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    start = rig.store.latest_offset(rig.store.first_offset(), 5)
    last = redis_client.xrevrange(keys.events, count=1)[0][0]
    redis_client.xtrim(keys.events, maxlen=0, approximate=False)
    rows = rig.events(start)
    assert gap_of(rows) == {"id": f"gap:{start['id']}", "after": start["id"], "before": last, "lost": 15}
    assert len(rows) == 1


async def test_a_batch_trimmed_after_it_was_planned_does_not_count_the_events_of_the_next(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    start = rig.store.latest_offset(rig.store.first_offset(), 5)
    end = rig.store.latest_offset(start, 5)
    redis_client.xtrim(keys.events, maxlen=2, approximate=False)
    assert gap_of(rig.events(start, end)) == {
        "id": f"gap:{start['id']}",
        "after": start["id"],
        "before": end["id"],
        "lost": 5,
    }
    assert gap_of(rig.events(end))["lost"] == 8


async def test_a_number_that_the_offset_does_not_tell_is_left_open(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    start = {"id": rig.store.latest_offset(rig.store.first_offset(), 5)["id"]}
    redis_client.xtrim(keys.events, maxlen=2, approximate=False)
    assert gap_of(rig.events(start))["lost"] is None


async def test_a_stream_begun_anew_is_a_gap_and_then_read_from_its_beginning(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    start = rig.store.latest_offset(rig.store.first_offset(), None)
    redis_client.delete(keys.events)
    assert rig.store.latest_offset(start, None) == start
    await rig.add(NewJob("new"))
    rows = rig.events(start)
    assert (gap_of(rows)["after"], gap_of(rows)["lost"]) == (start["id"], None)
    assert kinds(rows) == ["gap", "added", "waiting"]


async def test_a_stream_begun_anew_with_smaller_ids_is_read_from_its_beginning(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    start = {"id": "1700000000000-5", "n": 40}
    redis_client.xadd(keys.events, {"event": "added", "jobId": "1"}, id="1600000000000-1")
    end = rig.store.latest_offset(start, None)
    assert not rig.store.passed(start, end)
    rows = rig.events(start, end)
    assert gap_of(rows) == {
        "id": "gap:1700000000000-5",
        "after": "1700000000000-5",
        "before": "1600000000000-1",
        "lost": None,
    }
    assert kinds(rows) == ["gap", "added"]
    assert rig.store.latest_offset(end, None) == end
