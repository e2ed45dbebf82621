"""Flows, schedules, dead letters and queues: the same call made by either side leaves the same rows."""

from __future__ import annotations

from jobwire import AddStatus
from jobwire.backends.pgboss import GraphJob
from jobwire.options import Unique

from .same import assert_same, jobs


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
            GraphJob("a", ours, {"n": 1}),
            GraphJob("b", ours, {"n": 2}),
            GraphJob("c", ours, {"n": 3}, {"priority": 4}, depends_on=["a", "b"]),
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


async def test_a_schedule_that_node_stored_without_a_key_can_be_stopped(node, connection, pair):
    from jobwire import Queue

    theirs, _ = await pair()
    await node.call("schedule", theirs, "5 4 * * *", {"n": 1})
    async with Queue(theirs, connection) as queue:
        assert [schedule.key for schedule in await queue.schedules()] == [""]
        assert await queue.unschedule("")
        assert await queue.schedules() == []


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
    assert (second.id, second.add_status) == (first.id, AddStatus.DUPLICATE)
    [job] = await node.call("fetch", queue.name)
    assert (await queue.add({"n": 3}, unique=Unique("report"))).add_status is AddStatus.DUPLICATE
    await node.call("complete", queue.name, job["id"])
    assert (await queue.add({"n": 4}, unique=Unique("report"))).add_status is AddStatus.ADDED
