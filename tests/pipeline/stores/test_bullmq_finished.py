"""Finished BullMQ jobs leave for an archive and come back from one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import redis

from interop.peer import NodeQueue, Peer
from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Completed, Failed
from jobwire.embedded import Server
from jobwire.errors import InvalidOption
from jobwire.options import NewJob, Parent
from jobwire.pipeline.stores.boundary import Stamp, list_queues
from jobwire.urls import parse

from .redis_rig import QUEUE, Rig, batch_of, finished_row, rig_at, stamps


@pytest.fixture
async def rig(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bullmq")) as rig:
        yield rig


@pytest.fixture
def keys(rig: Rig) -> Keys:
    return Keys(parse(rig.url).options["prefix"], QUEUE)


@pytest.fixture(scope="module")
def peer(jobwire_valkey: Server) -> Iterator[Peer]:
    with Peer("bullmq", jobwire_valkey.url) as peer:
        yield peer


def stored(client: redis.Redis, keys: Keys) -> dict[str, Any]:
    """All of the queue but its events."""
    found: dict[str, Any] = {}
    readers = {
        "hash": client.hgetall,
        "string": client.get,
        "list": lambda key: client.lrange(key, 0, -1),
        "zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        "set": client.smembers,
    }
    for key in client.scan_iter(match=f"{keys.base}*", count=1000):
        kind = client.type(key)
        if kind != "stream":
            found[key] = readers[kind](key)
    return found


# --- leaving --------------------------------------------------------------------------------------------------------


async def test_archived_jobs_are_removed_with_all_that_is_theirs_and_nothing_else(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob(n) for n in range(10)))
    await rig.backend.logs.log(QUEUE, "1", "a line", 0)
    await rig.complete(4)
    await rig.fail(3)
    archived = rig.finished()
    await rig.complete(1)
    purged = rig.store.purge(stamps(archived))
    assert sorted(purged.removed) == [str(n) for n in range(1, 8)]
    assert list(purged.kept) == []
    assert {row["id"]: row["state"] for row in rig.rows()} == {"8": "completed", "9": "waiting", "10": "waiting"}
    own = {key for key in stored(redis_client, keys) if key.removeprefix(keys.base)[0].isdigit()}
    assert own == {keys.job("8"), keys.job("9"), keys.job("10")}
    assert rig.events()[-1]["kind"] == "cleaned"


@pytest.mark.parametrize(
    "change",
    [
        lambda client, keys: client.hset(keys.job("1"), "returnvalue", "2"),
        lambda client, keys: client.hset(keys.job("1"), "extra", ""),
        lambda client, keys: client.hdel(keys.job("1"), "atm"),
        lambda client, keys: client.rpush(keys.logs("1"), "one more line"),
        lambda client, keys: client.set(keys.lock("1"), "someone"),
        lambda client, keys: client.zadd(keys.failed, {"1": 1}) and client.zrem(keys.completed, "1"),
    ],
    ids=["another result", "a new field", "a field less", "another line in its log", "a lock", "another state"],
)
async def test_a_job_that_has_changed_since_it_was_archived_is_kept(
    rig: Rig, keys: Keys, redis_client: redis.Redis, change: Callable[[redis.Redis, Keys], object]
) -> None:
    await rig.add(NewJob(1), NewJob(2))
    await rig.complete(2)
    archived = rig.finished()
    change(redis_client, keys)
    before = redis_client.hgetall(keys.job("1"))
    purged = rig.store.purge(stamps(archived))
    assert (list(purged.removed), list(purged.kept)) == (["2"], ["1"])
    assert redis_client.hgetall(keys.job("1")) == before


async def test_a_job_that_was_retried_after_it_was_archived_runs_again(rig: Rig) -> None:
    await rig.add(NewJob(1), NewJob(2))
    await rig.fail(2)
    archived = rig.finished()
    await rig.backend.retry(QUEUE, ["1"])
    assert list(rig.store.purge(stamps(archived)).kept) == ["1"]
    assert [one.job.id for one in await rig.claim(5)] == ["1"]


async def test_a_job_that_failed_again_in_the_same_way_is_another_than_the_archived(rig: Rig) -> None:
    await rig.add(NewJob(1))
    await rig.fail(1)
    archived = rig.finished()
    await rig.backend.retry(QUEUE, ["1"])
    await rig.fail(1)
    assert list(rig.store.purge(stamps(archived)).kept) == ["1"]


async def test_a_child_that_its_parent_still_waits_for_is_kept(rig: Rig) -> None:
    await rig.add(NewJob(None, id="parent", extra={"waitingChildren": True}))
    await rig.add(*(NewJob(name, id=name, parent=Parent("parent", QUEUE)) for name in ("done", "broken")))
    done, broken = await rig.claim(2)
    await rig.settle([Completed(done, b"1"), Failed(broken, "boom", final=True)])
    purged = rig.store.purge(stamps(rig.finished()))
    assert (list(purged.removed), list(purged.kept)) == (["done"], ["broken"])
    assert rig.row("parent")["state"] == "waiting_children"


async def test_unknown_jobs_and_states_are_kept(rig: Rig) -> None:
    await rig.add(NewJob(1))
    await rig.complete(1)
    (row,) = rig.finished()
    odd = [Stamp("9", "completed", row["fingerprint"]), Stamp("1", "waiting", row["fingerprint"]), Stamp("", "", "")]
    assert list(rig.store.purge(odd).kept) == ["9", "1", ""]
    assert rig.store.present(["1", "9"]) == {"1"}


async def test_thousands_are_purged(rig: Rig) -> None:
    await rig.add(*(NewJob({"n": n}) for n in range(3_000)))
    await rig.complete(3_000)
    purged = rig.store.purge(stamps(rig.finished()))
    assert len(purged.removed) == 3_000
    assert rig.rows() == []


# --- coming back ----------------------------------------------------------------------------------------------------


async def test_what_was_archived_and_purged_comes_back_key_for_key(
    rig: Rig, keys: Keys, redis_client: redis.Redis
) -> None:
    await rig.add(*(NewJob({"n": n, "s": "zoë"}, name="welcome", priority=n % 3, attempts=2) for n in range(20)))
    await rig.add(NewJob(None, id="parent", extra={"waitingChildren": True}))
    await rig.add(*(NewJob(n, id=f"kid-{n}", parent=Parent("parent", QUEUE)) for n in range(3)))
    await rig.backend.logs.log(QUEUE, "3", "a line — ¾", 0)
    await rig.backend.progress.update_progress(QUEUE, "4", b'{"percent":50}')
    await rig.complete(24)
    await rig.add(*(NewJob({"n": n}, attempts=2) for n in range(3)))
    for _ in range(2):
        await rig.settle([Failed(one, "zu spät", "Traceback: here") for one in await rig.claim(3)])
    before, rows = stored(redis_client, keys), rig.finished()
    assert f"{keys.job('parent')}:processed" in before
    assert len(rig.store.purge(stamps(rows)).removed) == 27
    assert rig.store.put_finished(batch_of(rows)) == 27
    assert stored(redis_client, keys) == before
    again = {row["id"]: row for row in rig.finished()}
    assert again == {row["id"]: row for row in rows}


async def test_fields_that_were_no_good_come_back_as_they_were(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(NewJob({"n": 1}))
    await rig.complete(1)
    odd = {"priority": "007", "stacktrace": "[]", "returnvalue": "bare", "processedOn": "1.5", "attemptsMade": "4"}
    redis_client.hset(keys.job("1"), mapping=odd)
    before, rows = stored(redis_client, keys), rig.finished()
    rig.store.purge(stamps(rows))
    rig.store.put_finished(batch_of(rows))
    assert stored(redis_client, keys) == before


async def test_a_job_whose_id_is_taken_is_left_as_it_is(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(NewJob(1), NewJob(2))
    await rig.complete(2)
    rows = rig.finished()
    rig.store.purge(stamps([row for row in rows if row["id"] == "1"]))
    redis_client.hset(keys.job("2"), "returnvalue", '"newer"')
    assert rig.store.put_finished(batch_of(rows)) == 1
    assert rig.store.put_finished(batch_of(rows)) == 0
    assert rig.row("2")["result"] == '"newer"'


async def test_restored_numbers_are_not_given_to_new_jobs(rig: Rig, keys: Keys, redis_client: redis.Redis) -> None:
    await rig.add(*(NewJob(n) for n in range(5)))
    await rig.complete(5)
    rows = rig.finished()
    await rig.backend.obliterate(QUEUE, force=True)
    assert rig.store.put_finished(batch_of(rows)) == 5
    (added,) = await rig.add(NewJob("new"))
    assert added.id == "6"


async def test_node_reads_a_job_that_came_from_another_store(rig: Rig, keys: Keys, peer: Peer) -> None:
    failed = finished_row(id="a-2", state="failed", result=None, error="zu spät", stacktrace="Error: zu spät\n  at x")
    assert rig.store.put_finished(batch_of([finished_row(worker="ada", progress="50"), failed])) == 2
    node = NodeQueue(peer, keys.prefix, QUEUE)
    done, broken = await node.get("a-1"), await node.get("a-2")
    assert done is not None
    assert broken is not None
    assert (done.state, done.name, done.data, done.returnvalue) == (
        "completed",
        "welcome",
        {"to": "zoë"},
        {"sent": True},
    )
    assert (done.attemptsMade, done.opts["attempts"], done.processedBy, done.progress) == (2, 3, "ada", 50)
    assert (done.timestamp, done.processedOn, done.finishedOn) == (1772366400250, 1772366401250, 1772366402250)
    assert (broken.state, broken.failedReason, list(broken.stacktrace)) == (
        "failed",
        "zu spät",
        ["Error: zu spät\n  at x"],
    )
    counts = await node.counts()
    assert (counts["completed"], counts["failed"]) == (1, 1)


async def test_a_job_from_another_store_gets_an_id_that_the_protocol_allows(rig: Rig) -> None:
    refused = ["17", "-5", "x:y", "paused"]
    assert rig.store.put_finished(batch_of([finished_row(id=one) for one in (*refused, "x:y:z")])) == 5
    found = [row["id"] for row in rig.rows()]
    assert sum(one.startswith("jw-") for one in found) == len(refused)
    assert "x:y:z" in found


@pytest.mark.parametrize("columns", [{"state": "waiting"}, {"malformed": "no data"}], ids=["unfinished", "malformed"])
async def test_only_sound_finished_jobs_are_taken(rig: Rig, columns: dict[str, str]) -> None:
    with pytest.raises(InvalidOption, match="must be finished and sound"):
        rig.store.put_finished(batch_of([finished_row(**columns)]))


async def test_a_cancelled_job_becomes_a_failed_one(rig: Rig) -> None:
    rig.store.put_finished(batch_of([finished_row(state="cancelled", result=None)]))
    assert (rig.row("a-1")["state"], rig.row("a-1")["error"]) == ("failed", "cancelled")


async def test_what_is_present_are_jobs_and_not_the_queues_own_keys(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(3)), NewJob(1, id="my-id"))
    assert rig.store.present(["1", "4", "9", "my-id", "meta", "wait", "id", ""]) == {"1", "my-id"}


async def test_queues_are_listed_by_their_names(rig: Rig) -> None:
    await rig.add(NewJob(1))
    async with rig_at(rig.url, "очередь") as other:
        await other.add(NewJob(1))
    async with rig_at(rig.url, "a*[b]") as third:
        third.store.put_finished(batch_of([finished_row()]))
    assert list_queues(parse(rig.url)) == ["a*[b]", QUEUE, "очередь"]


async def test_jobs_on_a_cluster_are_purged_and_restored(jobwire_valkey_cluster: Any, unique: str) -> None:
    hosts = jobwire_valkey_cluster.hosts
    async with rig_at(f"bullmq+cluster://{hosts}/?prefix={{{unique}}}") as rig:
        await rig.add(*(NewJob(n) for n in range(5)))
        await rig.complete(5)
        rows = rig.finished()
        assert len(rig.store.purge(stamps(rows)).removed) == 5
        assert rig.store.put_finished(batch_of(rows)) == 5
        assert json.loads(rig.row("3")["payload"]) == 2
        assert list_queues(parse(rig.url)) == [QUEUE]
