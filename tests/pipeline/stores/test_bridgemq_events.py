"""Events told from BridgeMQ's job records: each under one id, however often it is told."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
import redis

from jobwire.backends.bridgemq.work.outcomes import with_run
from jobwire.boundary import Claim, Failed
from jobwire.native import BridgeMQWorker
from jobwire.options import NewJob
from jobwire.urls import parse

from .redis_rig import QUEUE, STORE, Rig, Row, rig_at


@pytest.fixture
async def rig(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bridgemq")) as rig:
        yield rig


def kinds(rows: list[Row], job_id: str) -> list[str]:
    own = [row for row in rows if row["job_id"] == job_id]
    return [row["kind"] for row in sorted(own, key=lambda row: (row["at"], row["kind"] != "created"))]


async def test_a_completed_job_tells_of_its_life(rig: Rig) -> None:
    await rig.add(NewJob({"to": "zoë"}, id="a"))
    await rig.complete(1, b'{"sent":true}')
    rows = rig.events()
    assert kinds(rows, "a") == ["created", "claimed", "completed"]
    created, claimed, completed = sorted(rows, key=lambda row: ["created", "claimed", "completed"].index(row["kind"]))
    ms = round(completed["at"].timestamp() * 1000)
    assert completed["id"] == f"a:1:completed:{ms}"
    assert json.loads(completed["data"]) == {"worker": "ada", "result": {"sent": True}}
    assert json.loads(claimed["data"]) == {"worker": "ada"}
    assert created["at"] <= claimed["at"] <= completed["at"]
    assert {(row["store"], row["queue"], row["malformed"]) for row in rows} == {(STORE, QUEUE, None)}


async def test_a_run_after_a_failure_has_the_time_of_its_own_readiness(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a", attempts=3), NewJob(2, id="b", attempts=2))
    for delay in (0.0, 0.0):
        claims = {claim.job.id: claim for claim in await rig.claim(2)}
        failed = [Failed(claim, "no answer", delay=600.0 if job == "b" else delay) for job, claim in claims.items()]
        await rig.settle(failed)
    (before,) = [row for row in rig.events() if (row["job_id"], row["kind"]) == ("a", "retried")]
    await rig.complete(1)
    await rig.backend.promote(QUEUE, ["b"])
    await rig.complete(1)

    claimed = {row["job_id"]: row for row in rig.events() if row["kind"] == "claimed"}

    assert [claimed[job]["id"].split(":")[1] for job in "ab"] == ["3", "2"]
    ready = json.loads(claimed["a"]["data"])["ready"]
    assert before["at"].timestamp() * 1000 - 1 <= ready <= claimed["a"]["at"].timestamp() * 1000
    assert "ready" not in json.loads(claimed["b"]["data"])


async def test_attempts_that_a_worker_remembers_are_all_there(place: Callable[[str], str]) -> None:
    async with rig_at(place("bridgemq"), native=BridgeMQWorker(remember_attempts=timedelta(days=7))) as rig:
        await rig.add(NewJob(1, id="a", attempts=4))
        for number in range(3):
            (claim,) = await rig.claim(1)
            await rig.settle([Failed(claim, f"no answer {number}", kind="ValueError", delay=0.0)])
        await rig.complete(1)

        rows = rig.events()

    runs = {tuple(row["id"].split(":")[1:3]): json.loads(row["data"]) for row in rows}
    retried = [("1", "retried"), ("2", "retried"), ("3", "retried")]
    claimed = [("1", "claimed"), ("2", "claimed"), ("3", "claimed"), ("4", "claimed")]
    assert sorted(runs) == sorted([("0", "created"), *claimed, *retried, ("4", "completed")])
    assert len(rows) == len(runs)
    assert [(runs[one]["error"], runs[one]["name"]) for one in retried] == [
        (f"no answer {number}", "ValueError") for number in range(3)
    ]
    assert [runs[one].get("ready") for one in claimed] == [None, *(runs[one]["delay"] for one in retried)]


def test_attempts_are_remembered_for_a_time_and_not_more_than_fifty() -> None:
    document: dict[str, Any] = {"attempts": 0, "x": {"timeoutMs": 5}}
    failed = Failed(Claim(None, "t"), "no answer" * 1000)  # type: ignore[arg-type] only its error is read
    for number in range(60):
        times = {"started_ms": number, "now_ms": number, "ready_ms": number, "keep_ms": 1000 if number < 59 else 3}
        document = with_run({**document, "attempts": number}, failed, worker="ada", **times)
        if number == 58:
            assert [run["attempt"] for run in document["x"]["attempts"]] == list(range(10, 60))
    assert [run["attempt"] for run in document["x"]["attempts"]] == [57, 58, 59, 60]
    assert (document["x"]["timeoutMs"], len(document["x"]["attempts"][0]["error"])) == (5, 500)


async def test_a_run_that_failed_is_told_as_retried_and_the_last_one_as_dead(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a", attempts=2))
    (claim,) = await rig.claim(1)
    await rig.settle([Failed(claim, "no answer", "Traceback: here", delay=600.0)])
    retried = [row for row in rig.events() if row["kind"] == "retried"]
    assert [row["id"].split(":")[:3] for row in retried] == [["a", "1", "retried"]]
    told = json.loads(retried[0]["data"])
    assert (told["error"], told["worker"]) == ("no answer", "ada")
    assert told["delay"] == pytest.approx(time.time() * 1000 + 600_000, abs=60_000)
    await rig.backend.promote(QUEUE, ["a"])
    await rig.fail(1, "still no answer")
    rows = rig.events()
    assert kinds(rows, "a") == ["created", "claimed", "dead"]
    (dead,) = [row for row in rows if row["kind"] == "dead"]
    assert dead["id"].split(":")[:3] == ["a", "2", "dead"]
    assert json.loads(dead["data"])["error"] == "still no answer"


async def test_a_running_job_tells_who_runs_it(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a"))
    await rig.claim(1)
    (claimed,) = [row for row in rig.events() if row["kind"] == "claimed"]
    assert claimed["id"].startswith("a:1:claimed:")
    assert json.loads(claimed["data"]) == {"worker": "ada"}


async def test_a_delayed_job_tells_when_it_is_due(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a", delay=60.0))
    (created,) = rig.events()
    ms = round(created["at"].timestamp() * 1000)
    assert json.loads(created["data"]) == {"delay": ms + 60_000}


async def test_a_claim_has_one_id_while_the_job_runs_and_after(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a"))
    claims = await rig.claim(1)
    before = {row["id"] for row in rig.events()}
    await rig.settle([Failed(claims[0], "boom", final=True)])
    after = {row["id"] for row in rig.events()}
    assert before < after


async def test_batches_together_tell_every_event_under_one_id(rig: Rig) -> None:
    seen: dict[str, Row] = {}
    offset = rig.store.first_offset()
    for _ in range(4):
        await rig.add(*(NewJob(n) for n in range(25)))
        await rig.complete(20)
        latest = rig.store.latest_offset(offset, 10)
        seen |= {row["id"]: row for row in rig.events(offset, latest)}
        offset = latest
    latest = rig.store.latest_offset(rig.store.first_offset(), None)
    whole = {row["id"]: row for row in rig.events(rig.store.first_offset(), latest)}
    assert len(whole) == 100 + 80 + 80
    assert whole.keys() <= seen.keys()


async def test_a_queue_that_rests_has_nothing_new(rig: Rig) -> None:
    await rig.add(NewJob(1), NewJob(2))
    offset = rig.store.latest_offset(rig.store.first_offset(), None)
    assert rig.store.latest_offset(offset, None) == offset
    await rig.claim(1)
    latest = rig.store.latest_offset(offset, None)
    assert latest != offset
    assert not rig.store.passed(offset, latest) or offset["at"] == latest["at"]
    assert rig.store.passed(latest, offset)


async def test_what_happened_long_before_the_start_is_not_told_again(rig: Rig, redis_client: redis.Redis) -> None:
    namespace = parse(rig.url).options["namespace"]
    (old, new) = [one.id for one in await rig.add(NewJob("old"), NewJob("new"))]
    key = f"{namespace}:jobs:data:{old}"
    document = json.loads(redis_client.get(key) or "")
    redis_client.set(key, json.dumps({**document, "createdAt": document["createdAt"] - 3_600_000}))
    start = {"at": int(time.time() * 1000) - 1_000}
    assert {row["job_id"] for row in rig.events(start)} == {new}
    assert {row["job_id"] for row in rig.events()} == {old, new}


async def test_events_of_ten_thousand_jobs_are_told(rig: Rig) -> None:
    await rig.add(*(NewJob({"n": n}) for n in range(10_000)))
    first = rig.store.first_offset()
    end = rig.store.latest_offset(first, None)
    begun, cpu = time.perf_counter(), time.process_time()
    parts = rig.store.plan_events(first, end)
    told = sum(batch.num_rows for part in parts for batch in rig.store.read_events(part))
    took, worked = time.perf_counter() - begun, time.process_time() - cpu
    print(f"\nBridgeMQ events: {told / took:,.0f} rows/s, {told / worked:,.0f} per core")
    assert told == 10_000
