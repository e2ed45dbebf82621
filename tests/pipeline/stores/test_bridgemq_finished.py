"""Finished BridgeMQ jobs leave for an archive and come back from one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import redis

from jobwire.model import State
from jobwire.options import NewJob
from jobwire.pipeline.stores.boundary import Stamp
from jobwire.urls import parse

from .redis_rig import QUEUE, Rig, batch_of, finished_row, rig_at, stamps


@pytest.fixture
async def rig(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bridgemq")) as rig:
        yield rig


@pytest.fixture
def namespace(rig: Rig) -> str:
    return parse(rig.url).options["namespace"]


def documents(client: redis.Redis, namespace: str) -> dict[str, Any]:
    """Everything that the protocol itself keeps of jobs, and their logs."""
    found: dict[str, Any] = {}
    for key in client.scan_iter(match=f"{namespace}:*", count=1000):
        kind = client.type(key)
        if kind == "string" and ":jobs:" in key:
            text = client.get(key)
            found[key] = text if ":status:" in key else json.loads(text or "")
        elif kind == "list":
            found[key] = client.lrange(key, 0, -1)
    return found


# --- leaving --------------------------------------------------------------------------------------------------------


async def test_archived_jobs_are_removed_with_all_that_is_theirs_and_nothing_else(
    rig: Rig, namespace: str, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n, id=f"job-{n}") for n in range(9)))
    await rig.backend.logs.log(QUEUE, "job-0", "a line", 0)
    await rig.complete(4)
    await rig.fail(3)
    archived = rig.finished()
    await rig.complete(1)
    purged = rig.store.purge(stamps(archived))
    assert sorted(purged.removed) == [f"job-{n}" for n in range(7)]
    assert list(purged.kept) == []
    assert {row["id"]: row["state"] for row in rig.rows()} == {"job-7": "completed", "job-8": "waiting"}
    left = documents(redis_client, namespace)
    assert not [key for key in left if any(key.endswith(f":job-{n}") for n in range(7))]
    assert redis_client.lrange(f"{namespace}:jobs:deadletter", 0, -1) == []
    counts = await rig.backend.counts(QUEUE)
    assert (counts[State.COMPLETED], counts[State.FAILED], counts[State.WAITING]) == (1, 0, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda client, base: client.set(f"{base}:jobs:result:a", "{}"),
        lambda client, base: client.delete(f"{base}:jobs:result:a"),
        lambda client, base: client.append(f"{base}:jobs:data:a", " "),
        lambda client, base: client.set(f"{base}:jobs:progress:a", "{}"),
        lambda client, base: client.rpush(f"{base}:x:logs:a", "one more line"),
        lambda client, base: client.set(f"{base}:jobs:lock:a", "someone"),
        lambda client, base: client.sadd(f"{base}:jobs:active", "a"),
    ],
    ids=["another result", "no result", "other data", "progress", "a line in its log", "a lock", "running"],
)
async def test_a_job_that_has_changed_since_it_was_archived_is_kept(
    rig: Rig, namespace: str, redis_client: redis.Redis, change: Callable[[redis.Redis, str], object]
) -> None:
    await rig.add(NewJob(1, id="a"), NewJob(2, id="b"))
    await rig.complete(2)
    archived = rig.finished()
    change(redis_client, namespace)
    purged = rig.store.purge(stamps(archived))
    assert (list(purged.removed), list(purged.kept)) == (["b"], ["a"])
    assert redis_client.exists(f"{namespace}:jobs:data:a") == 1


async def test_a_job_that_was_retried_after_it_was_archived_runs_again(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a"), NewJob(2, id="b"))
    await rig.fail(2)
    archived = rig.finished()
    await rig.backend.retry(QUEUE, ["a"])
    assert list(rig.store.purge(stamps(archived)).kept) == ["a"]
    assert [one.job.id for one in await rig.claim(5)] == ["a"]


async def test_unknown_jobs_and_states_are_kept(rig: Rig) -> None:
    await rig.add(NewJob(1, id="a"))
    await rig.complete(1)
    (row,) = rig.finished()
    odd = [Stamp("b", "completed", row["fingerprint"]), Stamp("a", "waiting", row["fingerprint"])]
    assert list(rig.store.purge(odd).kept) == ["b", "a"]
    assert rig.store.present(["a", "b"]) == {"a"}


# --- coming back ----------------------------------------------------------------------------------------------------


async def test_what_was_archived_and_purged_comes_back_document_for_document(
    rig: Rig, namespace: str, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob({"n": n, "s": "zoë"}, id=f"job-{n}", attempts=1, priority=9) for n in range(20)))
    await rig.backend.logs.log(QUEUE, "job-3", "a line — ¾", 0)
    await rig.backend.progress.update_progress(QUEUE, "job-4", b'{"percent":50,"message":"half"}')
    await rig.complete(15)
    await rig.fail(5, "zu spät")
    before, rows = documents(redis_client, namespace), rig.finished()
    assert len(rows) == len(rig.store.purge(stamps(rows)).removed) == 20
    oldest_first = sorted(rows, key=lambda row: (row["finished_at"], row["id"]))
    assert rig.store.put_finished(batch_of(oldest_first)) == 20
    after = documents(redis_client, namespace)
    letters = f"{namespace}:jobs:deadletter"
    assert sorted(after.pop(letters)) == sorted(before.pop(letters))
    assert after == before
    again = {row["id"]: row for row in rig.finished()}
    assert again == {row["id"]: row for row in rows}
    assert set(await rig.all_jobs()) == again.keys()


async def test_completed_jobs_stay_for_the_protocols_day_and_the_dead_for_good(
    rig: Rig, namespace: str, redis_client: redis.Redis
) -> None:
    rig.store.put_finished(batch_of([finished_row(id="a"), finished_row(id="b", state="failed", error="boom")]))
    assert 86_000 < redis_client.ttl(f"{namespace}:jobs:data:a") <= 86_400
    assert redis_client.ttl(f"{namespace}:jobs:data:b") == -1
    await rig.backend.counts(QUEUE)  # forgets what is older than a day
    assert {row["id"]: row["state"] for row in rig.rows()} == {"a": "completed", "b": "failed"}


async def test_a_job_whose_id_is_taken_is_left_as_it_is(rig: Rig) -> None:
    await rig.add(NewJob("waiting", id="a-1"))
    assert rig.store.put_finished(batch_of([finished_row(), finished_row(id="a-2")])) == 1
    assert rig.store.put_finished(batch_of([finished_row(id="a-2")])) == 0
    assert rig.row("a-1")["state"] == "waiting"


async def test_the_backend_reads_a_job_that_came_from_another_store(rig: Rig) -> None:
    failed = finished_row(id="a-2", state="failed", result=None, error="zu spät", stacktrace="Error: zu spät")
    rig.store.put_finished(batch_of([finished_row(worker="ada"), failed]))
    done, broken = await rig.backend.get(QUEUE, ["a-1", "a-2"])
    assert done is not None
    assert broken is not None
    row = finished_row()
    assert (done.state, done.data, done.result) == (State.COMPLETED, {"to": "zoë"}, {"sent": True})
    assert (done.attempts, done.attempts_made, done.worker) == (3, 2, "ada")
    assert (done.created_at, done.started_at, done.finished_at) == (
        row["created_at"],
        row["started_at"],
        row["finished_at"],
    )
    assert (broken.state, broken.error, broken.stacktrace) == (State.FAILED, "zu spät", ("Error: zu spät",))
    assert broken.attempts_made == 2


async def test_a_job_restored_from_another_store_can_be_retried(rig: Rig) -> None:
    rig.store.put_finished(batch_of([finished_row(state="failed", result=None, error="boom")]))
    await rig.backend.retry(QUEUE, ["a-1"])
    (claim,) = await rig.claim(1)
    assert (claim.job.id, claim.job.data) == ("a-1", {"to": "zoë"})


async def test_ids_of_another_type_are_not_present(rig: Rig) -> None:
    await rig.add(NewJob(1, id="ours"))
    async with rig_at(rig.url, "parcels") as other:
        await other.add(NewJob(1, id="theirs"))
    assert rig.store.present(["ours", "theirs", "nobody's"]) == {"ours"}
