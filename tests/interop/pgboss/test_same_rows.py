"""The same call made by either side leaves the same rows, but for ids and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobwire.backends.pgboss import Boss, FlowJob
from jobwire.backoff import Backoff
from jobwire.options import NewJob, Unique

from .node import NodeBoss

TIMES = ("start_after", "created_on", "started_on", "completed_on", "keep_until", "heartbeat_on", "source_created_on")
SPANS = [f"round(extract(epoch FROM {time} - created_on))::int AS {time}" for time in TIMES]
POLICIES = ("standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo")


async def jobs(rows: Any, queue: str) -> list[dict[str, Any]]:
    """Jobs of a queue as they are stored, ids left out, times as whole seconds from the moment of creation."""
    found = await rows(
        f"SELECT to_jsonb(j) AS job, {', '.join(SPANS)}"
        + " FROM job j WHERE name = %s ORDER BY state, priority DESC, data::text, singleton_on, created_on",
        queue,
    )
    kept = []
    for row in found:
        job = {**row.pop("job"), **row}
        for name in ("id", "name", "source_id", "source_root_id", "source_name", "dead_letter"):
            job[name] = job.get(name) is not None
        kept.append(job)
    return kept


async def assert_same(rows: Any, ours: str = "ours", theirs: str = "node") -> None:
    """Both queues hold the same; if not, only what differs is shown."""
    own, other = await jobs(rows, ours), await jobs(rows, theirs)
    assert len(own) == len(other), [[(job["state"], job["data"]) for job in found] for found in (own, other)]
    differences = [
        {key: (mine[key], its[key]) for key in its if mine[key] != its[key]}
        for mine, its in zip(own, other, strict=True)
    ]
    assert not any(differences), differences


@pytest.fixture
async def pair(node: NodeBoss, boss: Boss):
    """Make two queues with the same settings: the first is Node's to use, the second ours."""

    async def make(**settings: Any) -> tuple[str, str]:
        for name in ("node", "ours"):
            await node.call("createQueue", f"{name}-dead", {})
            await node.call("createQueue", name, {**settings})
        return "node", "ours"

    return make


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
            assert (await queue.add(data, **options)).refused is None
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
        answers.append((sent is None, added.refused is not None))
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
    await assert_same(rows)


def consumer_of(connection: Any, queue: str, **settings: Any) -> Any:
    from jobwire.backend import ConsumerSettings

    return connection.backend.consumer(ConsumerSettings(queue=queue, worker_id="w", **settings))


@pytest.mark.parametrize("result", [None, {"sent": 1}, [1, 2], "text", 0, True])
async def test_complete(node, connection, pair, rows, result):
    from jobwire import codec
    from jobwire.backend import Completed

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
    from jobwire.backend import Failed

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
    from jobwire.backend import Failed

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
        first = await node.call("sendThrottled", theirs, {"n": 1}, {}, 3600, "key")
        second = await boss.throttled(ours, {"n": 1}, 3600, "key")
        assert (first is None) == (second.refused is not None)
    assert "throttled" in second.refused
    assert second.id
    await assert_same(rows)


async def test_debounced_sends(node, boss, pair, rows):
    theirs, ours = await pair()
    for _ in range(3):
        first = await node.call("sendDebounced", theirs, {"n": 1}, {}, 3600, "key")
        second = await boss.debounced(ours, {"n": 1}, 3600, "key")
        assert (first is None) == (second.refused is not None)
    ours_now, theirs_now = await jobs(rows, ours), await jobs(rows, theirs)
    assert len(ours_now) == 2
    for job in (*ours_now, *theirs_now):
        job["start_after"] = job["start_after"] > 0
        job["keep_until"] = job["keep_until"] > 1209600
    assert ours_now == theirs_now


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


async def test_flows(node, boss, pair, rows):
    theirs, ours = await pair()
    await node.call(
        "flow",
        [
            {"ref": "a", "name": theirs, "data": {"n": 1}},
            {"ref": "b", "name": theirs, "data": {"n": 2}},
            {"ref": "c", "name": theirs, "data": {"n": 3}, "dependsOn": ["a", "b"], "options": {"priority": 4}},
        ],
    )
    ids = await boss.flow(
        [
            FlowJob("a", ours, {"n": 1}),
            FlowJob("b", ours, {"n": 2}),
            FlowJob("c", ours, {"n": 3}, {"priority": 4}, depends_on=["a", "b"]),
        ]
    )
    assert set(ids) == {"a", "b", "c"}
    await assert_same(rows)
    query = "SELECT count(*) AS n FROM job_dependency WHERE child_name = %s AND parent_name = %s"
    assert await rows(query, ours, ours) == await rows(query, theirs, theirs) == [{"n": 2}]


async def test_schedules(node, connection, pair, rows):
    from jobwire import Queue

    theirs, ours = await pair()
    await node.call("schedule", theirs, "5 4 * * *", {"n": 1}, {"tz": "America/New_York", "key": "k", "priority": 2})
    async with Queue(ours, connection) as queue:
        await queue.schedule("k", cron="5 4 * * *", tz="America/New_York", data={"n": 1}, priority=2)
    query = "SELECT key, kind, cron, timezone, data, options, last_job_id FROM schedule WHERE name = %s"
    assert await rows(query, ours) == await rows(query, theirs)


async def test_redrive(node, boss, pair, rows):
    theirs, ours = await pair(retryLimit=0, policy="short")
    for name in (theirs, ours):
        for n in range(2):
            await node.call("send", name, {"n": n}, {"deadLetter": f"{name}-dead", "priority": 2, "group": {"id": "g"}})
            [job] = await node.call("fetch", name)
            await node.call("fail", name, job["id"], {"message": "no"})
    assert await node.call("redrive", f"{theirs}-dead") == 1
    assert await boss.redrive(f"{ours}-dead") == 1
    await assert_same(rows)
    [left], [other] = await jobs(rows, "ours-dead"), await jobs(rows, "node-dead")
    for job in (left, other):
        assert job["state"] == "failed"
        assert job["output"].pop("message")
        job["output"].pop("destination")
    assert left == other


async def test_queue_settings(node, boss, rows):
    settings = {"policy": "short", "retryLimit": 3, "retryBackoff": True, "retryDelayMax": 9, "notify": True}
    changes = {"retryLimit": 5, "expireInSeconds": 12, "heartbeatSeconds": 20, "notify": False}
    await node.call("createQueue", "node", settings)
    await boss.create_queue("ours", **settings)
    await node.call("updateQueue", "node", changes)
    await boss.update_queue("ours", **changes)
    query = "SELECT to_jsonb(q) - ARRAY['name', 'created_on', 'updated_on'] AS q FROM queue q WHERE name = %s"
    assert await rows(query, "ours") == await rows(query, "node")


async def test_supervision_counts_alike(node, boss, pair, rows):
    theirs, ours = await pair(retryLimit=0, policy="stately")
    for name in (theirs, ours):
        for n in range(6):
            await node.call("send", name, {"n": n}, {"singletonKey": f"k{n}", "startAfter": 600 if n == 5 else 0})
        [job] = await node.call("fetch", name)
        await node.call("fail", name, job["id"], {"message": "no"})
        [job] = await node.call("fetch", name)
        await node.call("complete", name, job["id"])
        await node.call("fetch", name)
    await rows("UPDATE queue SET monitor_on = now(), maintain_on = now() WHERE name <> %s RETURNING 1", ours)
    await boss.supervise()
    await rows("UPDATE queue SET monitor_on = NULL, maintain_on = NULL WHERE name = %s RETURNING 1", theirs)
    await node.call("supervise")
    query = (
        "SELECT to_jsonb(q) - ARRAY['name', 'created_on', 'updated_on', 'monitor_on', 'monitor_claim_on',"
        " 'maintain_on', 'retained_on', 'delta_on'] AS q FROM queue q WHERE name = %s"
    )
    [mine], [its] = await rows(query, ours), await rows(query, theirs)
    assert {k: (mine["q"][k], v) for k, v in its["q"].items() if mine["q"][k] != v} == {}


async def test_unique_on_a_standard_queue_is_a_policy_of_the_job_alone(node, queue, rows):
    first = await queue.add({"n": 1}, unique=Unique("report"))
    second = await queue.add({"n": 2}, unique=Unique("report"))
    assert (second.id, bool(second.refused)) == (first.id, True)
    [job] = await node.call("fetch", queue.name)
    assert (await queue.add({"n": 3}, unique=Unique("report"))).refused
    await node.call("complete", queue.name, job["id"])
    assert (await queue.add({"n": 4}, unique=Unique("report"))).refused is None
