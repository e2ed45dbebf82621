"""A BridgeMQ job type as rows: every job once, as the backend has it, while others change the queue."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from jobwire.boundary import Failed
from jobwire.model import State
from jobwire.options import NewJob
from jobwire.pipeline.stores.boundary import Wanted, list_queues
from jobwire.urls import parse

from .redis_rig import QUEUE, STORE, Rig, rig_at


@pytest.fixture
async def rig(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bridgemq")) as rig:
        yield rig


@pytest.fixture
def jobs(rig: Rig) -> str:
    """What the protocol's keys of jobs begin with."""
    return f"{parse(rig.url).options['namespace']}:jobs:"


def a_peers_job(client: redis.Redis, jobs: str, job_id: str, **fields: Any) -> None:
    """A job as another client of the protocol adds it, which knows nothing of our index."""
    document = {"jobId": job_id, "type": QUEUE, "payload": {}, "createdAt": 1_700_000_000_000, "attempts": 0, **fields}
    client.set(f"{jobs}data:{job_id}", json.dumps(document))
    client.set(f"{jobs}status:{job_id}", "waiting")
    client.rpush(f"{jobs}waiting", job_id)


async def mixed(rig: Rig, size: int) -> None:
    """Jobs in every state, beside those of another type."""
    share = size // 20
    await rig.add(*(NewJob({"n": n, "to": f"zoë{n}"}, attempts=3) for n in range(15 * share)))
    await rig.complete(5 * share)
    await rig.fail(share)
    retried = await rig.claim(share)
    await rig.settle([Failed(one, "try later", "Traceback: there", delay=3600.0) for one in retried])
    await rig.add(*(NewJob({"n": n}, delay=60.0 + n) for n in range(4 * share)))
    await rig.add(*(NewJob({"n": n}, priority=9) for n in range(share)))
    await rig.claim(share)


@pytest.mark.slow
async def test_ten_thousand_jobs_in_all_states_are_read_as_the_backend_has_them(rig: Rig) -> None:
    async with rig_at(rig.url, "parcels") as other:
        await mixed(other, 400)
        await mixed(rig, 10_000)
    jobs = await rig.all_jobs()
    begun, cpu = time.perf_counter(), time.process_time()
    parts = rig.store.plan_jobs(Wanted(), 4)
    read = sum(batch.num_rows for part in parts for batch in rig.store.read_jobs(part, Wanted()))
    took, worked = time.perf_counter() - begun, time.process_time() - cpu
    print(f"\nBridgeMQ jobs: {read / took:,.0f} rows/s, {read / worked:,.0f} per core")
    rows = {row["id"]: row for row in rig.rows()}
    states = {State.WAITING, State.DELAYED, State.ACTIVE, State.COMPLETED, State.FAILED}
    assert {job.state for job in jobs.values()} == states
    assert rows.keys() == jobs.keys()
    for job_id, job in jobs.items():
        row = rows[job_id]
        assert (row["store"], row["queue"], row["name"], row["malformed"]) == (STORE, QUEUE, QUEUE, None)
        assert (row["state"], row["native_state"]) == (job.state, job.native_state)
        assert (row["priority"], row["attempts"], row["attempts_made"]) == (
            job.priority,
            job.attempts,
            job.attempts_made,
        )
        assert json.loads(row["payload"]) == job.data
        assert (None if row["result"] is None else json.loads(row["result"])) == job.result
        assert (row["error"], row["worker"]) == (job.error, job.worker)
        assert row["stacktrace"] == (job.stacktrace[0] if job.stacktrace else None)
        times = (row["created_at"], row["run_at"], row["started_at"], row["finished_at"])
        assert times == (job.created_at, job.run_at, job.started_at, job.finished_at)


async def test_slices_of_a_plan_hold_equally_many_jobs_and_none_twice(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(500)), *(NewJob(n, delay=60.0) for n in range(500)))
    await rig.complete(250)
    parts = rig.store.plan_jobs(Wanted(), 5)
    sizes = [len(rig.part(part)) for part in parts]
    assert len({row["id"] for part in parts for row in rig.part(part)}) == sum(sizes) == 1_000
    assert sizes == [200] * 5


async def test_an_empty_type_has_no_slices(rig: Rig) -> None:
    assert rig.store.plan_jobs(Wanted(), 8) == []


async def test_positions_are_the_order_in_which_jobs_will_run(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(20)))
    await rig.add(*(NewJob(n, priority=9) for n in range(5)))
    rows = sorted(rig.rows(parts=3), key=lambda row: row["position"])
    assert [row["position"] for row in rows] == list(range(25))
    assert [row["id"] for row in rows] == [one.job.id for one in await rig.claim(25)]


async def test_jobs_that_peers_added_are_read(rig: Rig, jobs: str, redis_client: redis.Redis) -> None:
    for n in range(300):
        a_peers_job(redis_client, jobs, f"theirs-{n}", payload={"n": n})
    a_peers_job(redis_client, jobs, "foreign", type="parcels")
    rows = sorted(rig.rows(), key=lambda row: row["position"])
    assert [(row["id"], row["payload"]) for row in rows] == [(f"theirs-{n}", f'{{"n":{n}}}') for n in range(300)]
    assert list_queues(parse(rig.url)) == [QUEUE, "parcels"]


async def test_what_no_column_holds_is_kept_in_raw(rig: Rig, jobs: str, redis_client: redis.Redis) -> None:
    a_peers_job(redis_client, jobs, "a", metadata={"tenant": "т"}, theirs=[1, 2.5])
    raw = json.loads(rig.row("a")["raw"])
    assert raw["job"]["metadata"] == {"tenant": "т"}
    assert raw["job"]["theirs"] == [1, 2.5]
    assert raw["job"]["payload"] is None
    assert raw["status"] == "waiting"


async def test_only_wanted_states_and_times_are_read(rig: Rig) -> None:
    await mixed(rig, 400)
    states = frozenset([State.FAILED, State.DELAYED])
    assert {row["state"] for row in rig.rows(Wanted(states=states))} == {"failed", "delayed"}
    later = datetime.now(UTC) + timedelta(hours=1)
    assert rig.rows(Wanted(created_from=later)) == []
    assert {row["state"] for row in rig.rows(Wanted(finished_from=later))} == {"waiting", "delayed", "active"}


async def test_a_job_that_finishes_between_plan_and_read_is_read(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(600)))
    await rig.complete(100)
    before = await rig.all_jobs()
    parts = rig.store.plan_jobs(Wanted(), 6)
    seen = {row["id"] for row in rig.part(parts[-1])}
    await rig.complete(250)
    await rig.claim(20)
    for part in parts[:-1]:
        seen |= {row["id"] for row in rig.part(part)}
    assert before.keys() - seen == set()


async def test_what_is_no_job_is_a_row_with_the_reason(rig: Rig, jobs: str, redis_client: redis.Redis) -> None:
    ids = [one.id for one in await rig.add(*(NewJob(n) for n in range(6)))]
    data = [f"{jobs}data:{job_id}" for job_id in ids]
    redis_client.delete(data[0])
    redis_client.hset(data[0], "a", "hash")
    redis_client.set(data[1], "{not json")
    redis_client.set(data[2], "[1]")
    redis_client.set(data[3], b'{"type":"letters","payload":"caf\xe9","createdAt":1700000000000}')
    redis_client.set(data[4], json.dumps({"type": QUEUE, "payload": 1, "createdAt": "yesterday"}))
    reasons = {row["id"]: row["malformed"] for row in rig.rows()}
    assert [reasons[job_id] for job_id in ids[4:]] == ["its createdAt is not a time: 'yesterday'", None]
    assert reasons[ids[0]] == "its key holds no JSON text but a hash"
    assert reasons[ids[1]].startswith("its data is not JSON: ")
    assert reasons[ids[2]] == "its data is not a JSON object"
    assert reasons[ids[3]].startswith("its data is not JSON: ")


async def test_a_job_that_nobody_can_read_is_shown_to_whoever_asks(
    rig: Rig, jobs: str, redis_client: redis.Redis
) -> None:
    await rig.add(NewJob(1))
    redis_client.set(f"{jobs}data:poison", "{not json")
    redis_client.rpush(f"{jobs}waiting", "poison")
    row = rig.row("poison")
    assert (row["state"], row["native_state"]) == ("failed", "dead")
    assert row["malformed"].startswith("its data is not JSON: ")
    assert json.loads(row["raw"]) == {"data": "{not json"}


async def test_names_ids_and_payloads_of_any_script_are_read(place: Callable[[str], str]) -> None:
    async with rig_at(place("bridgemq"), "очередь 🐘") as rig:
        await rig.add(NewJob({"ключ": "\x00\u2028🐘\ud83d", "n": 0.1}, id="κλειδί-🗝"))
        await rig.fail(1, "half a character: \ud83d")
        (row,) = rig.rows()
        assert (row["queue"], row["id"]) == ("очередь 🐘", "κλειδί-🗝")
        assert json.loads(row["payload"]) == {"ключ": "\x00\u2028🐘\ud83d", "n": 0.1}
        assert row["error"].startswith("half a character: ")


async def test_a_cluster_is_read_like_a_single_server(jobwire_valkey_cluster: Any, unique: str) -> None:
    hosts = jobwire_valkey_cluster.hosts
    async with rig_at(f"bridgemq+cluster://{hosts}/?namespace={{{unique}}}") as rig:
        await rig.add(*(NewJob(n) for n in range(100)))
        await rig.complete(30)
        rows = {row["id"]: row["state"] for row in rig.rows(parts=3)}
        assert rows == {job_id: job.state for job_id, job in (await rig.all_jobs()).items()}
        assert len(rows) == 100
        assert list_queues(parse(rig.url)) == [QUEUE]
