"""A BullMQ queue as rows: every job once, as the backend has it, while others change the queue."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta

import pytest
import redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Completed, Failed
from jobwire.embedded import Server
from jobwire.model import State
from jobwire.options import NewJob, Parent, Unique
from jobwire.pipeline.stores.boundary import Wanted
from jobwire.urls import parse

from .redis_rig import QUEUE, STORE, Rig, rig_at


@pytest.fixture
async def rig(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bullmq")) as rig:
        yield rig


@pytest.fixture
def keys(rig: Rig) -> Keys:
    return Keys(parse(rig.url).options["prefix"], QUEUE)


async def mixed(rig: Rig, size: int) -> None:
    """Jobs in every state."""
    share = size // 20
    await rig.add(*(NewJob({"n": n, "to": f"zoë{n}"}, name=f"kind-{n % 3}", attempts=3) for n in range(12 * share)))
    await rig.complete(5 * share)
    await rig.fail(share)
    retried = await rig.claim(share)
    await rig.settle([Failed(one, "try later", "Traceback: there", delay=3600.0) for one in retried])
    await rig.add(*(NewJob({"n": n}, priority=1 + n % 7) for n in range(4 * share)))
    await rig.add(*(NewJob({"n": n}, delay=60.0 + n) for n in range(3 * share)))
    await rig.add(NewJob(None, id="parent", extra={"waitingChildren": True}))
    await rig.add(NewJob(None, id="child", parent=Parent("parent", QUEUE)))
    await rig.claim(share)


@pytest.mark.slow
async def test_ten_thousand_jobs_in_all_states_are_read_as_the_backend_has_them(rig: Rig) -> None:
    await mixed(rig, 10_000)
    jobs = await rig.all_jobs()
    begun, cpu = time.perf_counter(), time.process_time()
    parts = rig.store.plan_jobs(Wanted(), 4)
    read = sum(batch.num_rows for part in parts for batch in rig.store.read_jobs(part, Wanted()))
    took, worked = time.perf_counter() - begun, time.process_time() - cpu
    print(f"\nBullMQ jobs: {read / took:,.0f} rows/s, {read / worked:,.0f} per core")
    rows = {row["id"]: row for row in rig.rows()}
    assert {job.state for job in jobs.values()} == set(State) - {State.CANCELLED, State.PAUSED}
    assert rows.keys() == jobs.keys()
    for job_id, job in jobs.items():
        row = rows[job_id]
        assert (row["store"], row["queue"], row["malformed"]) == (STORE, QUEUE, None)
        assert row["name"] == job.name
        assert (row["state"], row["native_state"]) == (job.state, job.native_state)
        assert (row["priority"], row["attempts"], row["attempts_made"]) == (
            job.priority,
            job.attempts,
            job.attempts_made,
        )
        assert json.loads(row["payload"]) == job.data
        assert (None if row["result"] is None else json.loads(row["result"])) == job.result
        assert (row["error"], row["worker"]) == (job.error, job.worker)
        times = (row["created_at"], row["run_at"], row["started_at"], row["finished_at"])
        assert times == (job.created_at, job.run_at, job.started_at, job.finished_at)


async def test_slices_of_a_plan_hold_equally_many_jobs_and_none_twice(rig: Rig) -> None:
    await mixed(rig, 2_000)
    parts = rig.store.plan_jobs(Wanted(), 5)
    sizes = [len(rig.part(part)) for part in parts]
    ids = [row["id"] for part in parts for row in rig.part(part)]
    assert len(ids) == len(set(ids)) == sum(sizes)
    # The running jobs are read whole, by one slice.
    assert max(sizes) - min(sizes) <= 100 + 1, sizes


async def test_an_empty_queue_has_no_slices(rig: Rig) -> None:
    assert rig.store.plan_jobs(Wanted(), 8) == []


async def test_positions_are_the_order_in_which_jobs_will_run(rig: Rig) -> None:
    await rig.add(*(NewJob(n, priority=5 - n % 5) for n in range(10)))
    await rig.add(*(NewJob(n) for n in range(20)))
    await rig.add(NewJob("next", lifo=True))
    rows = rig.rows(parts=3)
    assert sorted(row["position"] for row in rows) == list(range(31))
    in_line = [row["id"] for row in sorted(rows, key=lambda row: row["position"])]
    assert in_line == [one.job.id for one in await rig.claim(31)]


async def test_delayed_jobs_have_the_order_and_the_time_in_which_they_come_due(rig: Rig) -> None:
    due = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    await rig.add(*(NewJob(n, run_at=due + timedelta(minutes=10 - n)) for n in range(10)))
    rows = sorted(rig.rows(), key=lambda row: row["position"])
    assert [row["payload"] for row in rows] == [str(n) for n in reversed(range(10))]
    assert [row["run_at"] for row in rows] == [due + timedelta(minutes=1 + n) for n in range(10)]


async def test_a_paused_queue_is_read_like_a_running_one(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    await rig.backend.pause.pause(QUEUE)
    rows = sorted(rig.rows(parts=2), key=lambda row: row["position"])
    assert [(row["payload"], row["state"], row["native_state"]) for row in rows] == [
        (str(n), "waiting", "paused") for n in range(10)
    ]


async def test_what_no_column_holds_is_kept_in_raw(rig: Rig) -> None:
    await rig.add(NewJob(None, id="parent", extra={"waitingChildren": True}))
    await rig.add(NewJob(1, id="kid", parent=Parent("parent", QUEUE, on_failure="fail"), unique=Unique("once")))
    row = rig.row("kid")
    assert (row["parent"], row["unique_key"]) == (f"{QUEUE}:parent", "once")
    raw = json.loads(row["raw"])
    assert json.loads(raw["parent"])["fpof"] is True
    assert json.loads(raw["opts"])["de"] == {"id": "once"}


async def test_a_finished_job_brings_its_log_along(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a"), NewJob(2, id="b"))
    await rig.backend.logs.log(QUEUE, "a", "half way — ¾", 0)
    await rig.complete(2)
    assert json.loads(rig.row("a")["raw"])[":logs"] == ["half way — ¾"]
    assert ":logs" not in json.loads(rig.row("b")["raw"])


async def test_the_newest_trace_is_shown_and_all_are_kept(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a", attempts=2))
    for stack in ("first trace", "second trace"):
        (claim,) = await rig.claim(1)
        await rig.settle([Failed(claim, "boom", stack)])
    row = rig.row("a")
    assert row["stacktrace"] == "second trace"
    assert json.loads(json.loads(row["raw"])["stacktrace"]) == ["first trace", "second trace"]


# --- only what is wanted --------------------------------------------------------------------------------------------


async def test_unwanted_states_are_not_read(rig: Rig) -> None:
    await mixed(rig, 400)
    wanted = Wanted(states=frozenset([State.FAILED, State.DELAYED]))
    assert {row["state"] for row in rig.rows(wanted)} == {"failed", "delayed"}


async def test_names_and_times_of_creation_narrow_a_read(rig: Rig) -> None:
    await rig.add(*(NewJob(n, name=f"kind-{n}", extra={"timestamp": 1_700_000_000_000 + n}) for n in range(10)))
    third = datetime.fromtimestamp(1_700_000_000.003, UTC)
    assert {row["name"] for row in rig.rows(Wanted(names=frozenset(["kind-1", "kind-9"])))} == {"kind-1", "kind-9"}
    assert len(rig.rows(Wanted(created_from=third))) == 7
    assert len(rig.rows(Wanted(created_before=third))) == 3


async def test_times_of_finishing_narrow_the_finished_and_nothing_else(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(12)))
    for n, job_id in enumerate(await rig.complete(10)):
        redis_client.zadd(keys.completed, {job_id: 1_700_000_000_000 + n})
        redis_client.hset(keys.job(job_id), "finishedOn", 1_700_000_000_000 + n)
    first = datetime.fromtimestamp(1_700_000_000.002, UTC)
    before = datetime.fromtimestamp(1_700_000_000.0075, UTC)
    rows = rig.rows(Wanted(finished_from=first, finished_before=before), parts=3)
    finished = sorted(row["finished_at"] for row in rows if row["state"] == "completed")
    assert finished == [first + timedelta(milliseconds=n) for n in range(6)]
    assert len(rows) == 6 + 2


# --- while the queue is at work -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trimmed", [False, True], ids=["events kept", "events trimmed"])
async def test_a_job_that_finishes_between_plan_and_read_is_read(
    rig: Rig, keys: Keys, redis_client: redis.Redis, trimmed: bool
) -> None:
    await rig.add(*(NewJob(n) for n in range(600)))
    await rig.complete(100)
    jobs = await rig.all_jobs()
    first, *_, last = parts = rig.store.plan_jobs(Wanted(), 6)
    seen = {row["id"] for row in rig.part(last)}
    await rig.complete(250)
    if trimmed:
        redis_client.xtrim(keys.events, maxlen=1, approximate=False)
    for part in parts[:-1]:
        seen |= {row["id"] for row in rig.part(part)}
    assert first != last
    assert jobs.keys() - seen == set()


async def test_a_job_that_goes_back_to_wait_for_a_retry_is_read(rig: Rig) -> None:
    await rig.add(*(NewJob(n, attempts=3) for n in range(300)), *(NewJob(n, delay=900.0) for n in range(300)))
    jobs = await rig.all_jobs()
    parts = rig.store.plan_jobs(Wanted(), 4)
    seen = {row["id"] for part in parts[2:] for row in rig.part(part)}
    claims = await rig.claim(150)
    await rig.settle([Failed(one, "later", delay=600.0) for one in claims])
    for part in parts[:2]:
        seen |= {row["id"] for row in rig.part(part)}
    assert jobs.keys() - seen == set()


async def test_a_failed_job_that_is_retried_before_its_slice_is_read_is_read(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(50)))
    failed = await rig.fail(25)
    parts = rig.store.plan_jobs(Wanted(), 2)
    seen = {row["id"] for row in rig.part(parts[0])}
    await rig.backend.retry(QUEUE, failed)
    seen |= {row["id"] for row in rig.part(parts[1])}
    assert (await rig.all_jobs()).keys() - seen == set()


async def test_a_list_that_moves_under_the_reader_is_read_whole(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(16_000)))
    before = set(redis_client.lrange(keys.wait, 0, -1))
    seen: set[str] = set()
    for part in rig.store.plan_jobs(Wanted(), 2):
        for batch in rig.store.read_jobs(part, Wanted()):
            seen |= set(batch.column("id").to_pylist())
            # A worker takes from the right, jobs are handed back to the right, producers push to the left.
            redis_client.rpop(keys.wait, 170)
            redis_client.rpush(keys.wait, *(f"back-{n}" for n in range(90)))
            redis_client.lpush(keys.wait, *(f"new-{n}" for n in range(60)))
    left = set(redis_client.lrange(keys.wait, 0, -1))
    assert (before & left) - seen == set()


async def test_many_jobs_handed_back_at_once_do_not_hide_others_from_the_reader(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(12_000)))
    before = set(redis_client.lrange(keys.wait, 0, -1))
    seen: set[str] = set()
    (part,) = rig.store.plan_jobs(Wanted(), 1)
    for batch in rig.store.read_jobs(part, Wanted()):
        seen |= set(batch.column("id").to_pylist())
        redis_client.rpush(keys.wait, *(f"back-{n}" for n in range(700)))
    assert before - seen == set()


async def test_a_queue_that_is_paused_between_plan_and_read_is_read(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(100)))
    parts = rig.store.plan_jobs(Wanted(), 3)
    await rig.backend.pause.pause(QUEUE)
    assert {row["id"] for part in parts for row in rig.part(part)} == {str(n) for n in range(1, 101)}


async def test_removed_jobs_are_left_out_in_silence(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    parts = rig.store.plan_jobs(Wanted(), 2)
    redis_client.delete(keys.job("4"))
    await rig.backend.remove(QUEUE, ["1", "10"])
    assert {row["id"] for part in parts for row in rig.part(part)} == {"2", "3", "5", "6", "7", "8", "9"}


# --- odd jobs -------------------------------------------------------------------------------------------------------


async def test_what_is_no_job_is_a_row_with_the_reason(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(*(NewJob(n) for n in range(7)))
    redis_client.delete(keys.job("1"))
    redis_client.set(keys.job("1"), "a text")
    redis_client.hset(keys.job("2"), "data", "{not json")
    redis_client.hdel(keys.job("3"), "timestamp")
    redis_client.hset(keys.job("4"), "name", b"caf\xe9")
    redis_client.hset(keys.job("5"), "timestamp", "yesterday")
    redis_client.hdel(keys.job("6"), "data")
    rows = {row["id"]: row for row in rig.rows()}
    reasons = {job_id: row["malformed"] for job_id, row in rows.items()}
    assert reasons.pop("7") is None
    assert reasons.pop("1").startswith("its key holds no hash: WRONGTYPE")
    assert reasons == {
        "2": "its data is not JSON: '{not json'",
        "3": "it has no timestamp",
        "4": "it holds bytes that are not UTF-8: b'\\xe9'",
        "5": "its timestamp is not a time: 'yesterday'",
        "6": "it has no data",
    }
    assert rows["4"]["state"] == "waiting"
    assert json.loads(rows["4"]["raw"])["name"] == "caf\\xe9"


async def test_fields_of_a_wrong_kind_spoil_nothing_else(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(NewJob({"n": 1}))
    await rig.complete(1)
    odd = {"opts": "[]", "priority": "high", "atm": "9" * 30, "processedOn": "soon", "returnvalue": "bare text"}
    redis_client.hset(keys.job("1"), mapping={**odd, "stacktrace": "not json", "progress": "½"})
    row = rig.row("1")
    assert row["malformed"] is None
    assert (row["priority"], row["started_at"], row["stacktrace"]) == (0, None, None)
    assert (row["result"], row["progress"]) == ('"bare text"', '"½"')
    raw = json.loads(row["raw"])
    assert {name: raw[name] for name in odd} == odd


async def test_names_ids_and_payloads_of_any_script_are_read(place: Callable[[str], str]) -> None:
    async with rig_at(place("bullmq"), "очередь 🐘") as rig:
        await rig.add(NewJob({"ключ": "\x00\u2028🐘\ud83d"}, id="κλειδί-🗝", name="имя"))
        (row,) = rig.rows()
        assert (row["queue"], row["id"], row["name"]) == ("очередь 🐘", "κλειδί-🗝", "имя")
        assert json.loads(row["payload"]) == {"ключ": "\x00\u2028🐘\ud83d"}


async def test_large_jobs_come_in_batches_of_bounded_size(rig: Rig) -> None:
    await rig.add(*(NewJob("x" * 1_000_000) for _ in range(80)))
    (part,) = rig.store.plan_jobs(Wanted(), 1)
    sizes = [batch.num_rows for batch in rig.store.read_jobs(part, Wanted())]
    assert sum(sizes) == 80
    assert max(sizes) <= 40


async def test_a_cluster_is_read_like_a_single_server(jobwire_valkey_cluster: Server, unique: str) -> None:
    hosts = jobwire_valkey_cluster.hosts
    async with rig_at(f"bullmq+cluster://{hosts}/?prefix={{{unique}}}") as rig:
        await rig.add(*(NewJob(n) for n in range(100)))
        await rig.settle([Completed(one, b"1") for one in await rig.claim(30)])
        assert rig.rows(parts=3) != []
        assert {row["id"] for row in rig.rows(parts=3)} == (await rig.all_jobs()).keys()
