"""The same call made by either side leaves the same rows, but for ids and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobwire import AddStatus
from jobwire.backoff import Backoff
from jobwire.options import NewJob

from .same import assert_same, jobs

MONTH = 30 * 86_400
"""For slots of time: two calls must not fall into two of them."""

POLICIES = ("standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo")


SENDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "priority": ({"priority": 5}, {"priority": 5}),
    "delay": ({"startAfter": 60}, {"delay": 60}),
    "moment": ({"startAfter": "2031-02-03T04:05:06Z"}, {"run_at": datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)}),
    "attempts": ({"retryLimit": 4}, {"attempts": 5}),
    "fixed backoff": (
        {"retryLimit": 4, "retryDelay": 7, "retryBackoff": False},
        {"attempts": 5, "backoff": Backoff.fixed(7)},
    ),
    "backoff": (
        {"retryLimit": 4, "retryDelay": 7, "retryBackoff": True, "retryDelayMax": 90},
        {"attempts": 5, "backoff": Backoff.exponential(7, cap=90)},
    ),
    "timeout": ({"expireInSeconds": 30}, {"timeout": 30}),
    "expires": ({"retentionSeconds": 100}, {"expires": timedelta(seconds=100)}),
    "delete after": ({"deleteAfterSeconds": 5}, {"extra": {"deleteAfterSeconds": 5}}),
    "heartbeat": ({"heartbeatSeconds": 20}, {"extra": {"heartbeatSeconds": 20}}),
    "group": ({"group": {"id": "g", "tier": "gold"}}, {"extra": {"group": {"id": "g", "tier": "gold"}}}),
    "key": ({"singletonKey": "k"}, {"extra": {"singletonKey": "k"}}),
}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {
            "retryLimit": 1,
            "retryDelay": 2,
            "retryBackoff": True,
            "retryDelayMax": 9,
            "expireInSeconds": 44,
            "retentionSeconds": 55,
            "deleteAfterSeconds": 66,
            "heartbeatSeconds": 77,
        },
        {"partition": True},
    ],
    ids=["defaults", "settings", "own table"],
)
async def test_send(node, connection, pair, rows, settings):
    from jobwire import Queue

    theirs, ours = await pair(**settings)
    async with Queue(ours, connection) as queue:
        for native, options in SENDS.values():
            data = {"n": len(native), "list": [1, None, "é"]}
            await node.call("send", theirs, data, native)
            assert (await queue.add(data, **options)).add_status is AddStatus.ADDED
    await assert_same(rows)


@pytest.mark.parametrize("data", [None, {"a": {"b": [1, 2.5, True, None]}}, {}], ids=["nothing", "nested", "empty"])
async def test_send_of_any_data(node, connection, pair, rows, data):
    from jobwire import Queue

    theirs, ours = await pair()
    async with Queue(ours, connection) as queue:
        await node.call("send", theirs, data)
        await queue.add(data)
    await assert_same(rows)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("own_table", [False, True], ids=["shared", "own table"])
async def test_a_second_job_of_a_key_under_every_policy(*, node, connection, boss, pair, rows, policy, own_table):
    theirs, ours = await pair(policy=policy, partition=own_table)
    answers = []
    for key in ("a", "a", "b", None, None):
        options = {} if key is None else {"singletonKey": key}
        if policy == "key_strict_fifo" and key is None:
            continue
        sent = await node.call("send", theirs, {"n": 1}, options)
        added = await boss.send(ours, {"n": 1}, **options)
        answers.append((sent is None, added.status is not AddStatus.ADDED))
        assert bool(added.id)
    assert [ours for _, ours in answers] == [theirs for theirs, _ in answers]
    await assert_same(rows)


@pytest.mark.parametrize("policy", POLICIES)
async def test_fetch_under_every_policy(*, node, connection, boss, pair, rows, policy):
    theirs, ours = await pair(policy=policy, heartbeatSeconds=30)
    for key in ("a", "a", "b", "b", "c"):
        for name in (theirs, ours):
            await node.call("send", name, {"key": key}, {"singletonKey": key})
    consumer = consumer_of(connection, ours)
    # Node looks at as many jobs as it may take, and needs a second look for keys behind others of the same key.
    fetched, claims = [], []
    for _ in range(2):
        fetched += await node.call("fetch", theirs, {"batchSize": 4})
        claims += (await consumer.settle([], claim=4)).claims
    assert sorted(job["data"]["key"] for job in fetched) == sorted(claim.job.data["key"] for claim in claims)
    # The one difference while a job of ours runs: it may be tried once more, should its worker die.
    await rows("UPDATE job SET retry_limit = retry_limit - 1 WHERE name = %s AND state = 'active' RETURNING 1", ours)
    await assert_same(rows)


def consumer_of(connection: Any, queue: str, **settings: Any) -> Any:
    from jobwire.boundary import ConsumerSettings

    return connection.backend.consumer(ConsumerSettings(queue=queue, worker_id="w", **settings))


@pytest.mark.parametrize("result", [None, {"sent": 1}, [1, 2], "text", 0, True])
async def test_complete(node, connection, pair, rows, result):
    from jobwire import codec
    from jobwire.boundary import Completed

    theirs, ours = await pair()
    for name in (theirs, ours):
        await node.call("send", name, {"n": 1})
    [job] = await node.call("fetch", theirs)
    await node.call("complete", theirs, job["id"], result)
    consumer = consumer_of(connection, ours)
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([Completed(claim, codec.dumps(result))], claim=0)
    await assert_same(rows)


@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("policy", ["standard", "stately", "key_strict_fifo"])
async def test_fail(*, node, connection, pair, rows, left, policy):
    from jobwire.boundary import Failed

    theirs, ours = await pair(policy=policy, retryDelay=10)
    for name in (theirs, ours):
        options = {
            "retryLimit": left,
            "deadLetter": f"{name}-dead",
            "singletonKey": "k",
            "priority": 3,
            "group": {"id": "g"},
        }
        await node.call("send", name, {"n": 1}, options)
    [job] = await node.call("fetch", theirs)
    await node.call("fail", theirs, job["id"], {"name": "Error", "message": "no", "stack": "no"})
    consumer = consumer_of(connection, ours)
    [claim] = (await consumer.settle([], claim=1)).claims
    await consumer.settle([Failed(claim, "no")], claim=0)
    await assert_same(rows)
    await assert_same(rows, "ours-dead", "node-dead")
    sources = await rows("SELECT source_name FROM job WHERE name = 'ours-dead'")
    assert sources == [{"source_name": "ours"}] * (1 - left)


async def test_a_stately_retry_that_finds_another_one_waiting_fails(node, connection, pair, rows):
    from jobwire.boundary import Failed

    theirs, ours = await pair(policy="stately", retryDelay=60)
    consumer = consumer_of(connection, ours)
    for n in range(2):
        for name in (theirs, ours):
            await node.call("send", name, {"n": n}, {"singletonKey": "k"})
        [job] = await node.call("fetch", theirs)
        await node.call("fail", theirs, job["id"], {"name": "Error", "message": "no", "stack": "no"})
        [claim] = (await consumer.settle([], claim=1)).claims
        await consumer.settle([Failed(claim, "no")], claim=0)
    assert [job["state"] for job in await jobs(rows, ours)] == ["retry", "failed"]
    await assert_same(rows)


@pytest.mark.parametrize("action", ["cancel", "resume", "retry", "deleteJob"])
async def test_actions_on_jobs(*, node, connection, boss, pair, rows, action):
    from jobwire import Queue

    theirs, ours = await pair(retryLimit=0)
    async with Queue(ours, connection):
        ids = {}
        for name in (theirs, ours):
            for state in ("created", "active", "failed", "cancelled"):
                ids[name, state] = await node.call(
                    "send", name, {"state": state}, {"priority": {"failed": 2, "active": 1}.get(state, 0)}
                )
        for name in (theirs, ours):
            await node.call("fetch", name, {"batchSize": 2})
            await node.call("fail", name, ids[name, "failed"], {"message": "no"})
            await node.call("cancel", name, ids[name, "cancelled"])
        everything = {name: [ids[key] for key in ids if key[0] == name] for name in (theirs, ours)}
        await node.call(action, theirs, everything[theirs])
        acts = {"cancel": "cancel", "resume": "resume", "retry": "retry", "deleteJob": "remove"}
        for job_id in everything[ours]:
            state = (await rows("SELECT state FROM job WHERE name = %s AND id = %s", ours, job_id))[0]["state"]
            # Ours refuses to delete what runs and runs cancelled jobs again; Node deletes everything and leaves those.
            if action == "deleteJob" and state == "active":
                await rows("DELETE FROM job WHERE id = %s RETURNING 1", job_id)
            elif not (action == "retry" and state == "cancelled"):
                await connection.backend.admin.act(acts[action], ours, [job_id])
    await assert_same(rows)


async def test_throttled_sends(node, boss, pair, rows):
    theirs, ours = await pair()
    for _ in range(3):
        first = await node.call("sendThrottled", theirs, {"n": 1}, {}, MONTH, "key")
        second = await boss.throttled(ours, {"n": 1}, MONTH, "key")
        assert (first is None) == (second.status is not AddStatus.ADDED)
    assert second.status is AddStatus.THROTTLED
    assert second.id
    await assert_same(rows)


async def test_debounced_sends(node, boss, pair, rows):
    theirs, ours = await pair()
    for _ in range(3):
        first = await node.call("sendDebounced", theirs, {"n": 1}, {}, MONTH, "key")
        second = await boss.debounced(ours, {"n": 1}, MONTH, "key")
        assert (first is None) == (second.status is not AddStatus.ADDED)
    assert [job["start_after"] > 0 for job in await jobs(rows, ours)] == [False, True]
    await assert_same(rows)


@pytest.mark.parametrize(
    "changes",
    [
        {"priority": 9},
        {"startAfter": 600},
        {"startAfter": 600, "retentionSeconds": 50},
        {"retryLimit": 8, "retryDelay": 3},
        {"expireInSeconds": 40, "deleteAfterSeconds": 41},
        {"heartbeatSeconds": 42},
        {"group": {"id": "h"}},
    ],
    ids="-".join,
)
async def test_update(node, boss, pair, rows, changes):
    theirs, ours = await pair()
    for name in (theirs, ours):
        for n in range(2):
            await node.call("send", name, {"n": n}, {"singletonKey": "k", "group": {"id": "g", "tier": "t"}})
    await node.call("update", theirs, {"n": 7}, {"singletonKey": "k", **changes})
    [changed] = await boss.update(ours, singletonKey="k", data={"n": 7}, **changes)
    assert changed
    await assert_same(rows)


async def test_upsert(node, boss, pair, rows):
    theirs, ours = await pair()
    for n in range(2):
        await node.call("upsert", theirs, {"n": n}, {"singletonKey": "k", "priority": n})
        await boss.upsert(ours, "k", {"n": n}, priority=n)
    assert len(await jobs(rows, ours)) == 1
    await assert_same(rows)


async def test_bulk_insert(node, connection, pair, rows):
    from jobwire import Queue

    theirs, ours = await pair()
    await node.call("insert", theirs, [{"data": {"n": n}, "priority": n, "singletonKey": f"k{n}"} for n in range(20)])
    async with Queue(ours, connection) as queue:
        await queue.add_many([NewJob({"n": n}, priority=n, extra={"singletonKey": f"k{n}"}) for n in range(20)])
    await assert_same(rows)
