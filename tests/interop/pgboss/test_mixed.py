"""Node and Python on the same queues at the same time."""

from __future__ import annotations

import asyncio

import pytest

from awaiting import eventually
from jobwire import AddStatus, InvalidOption, Queue, State, StoreRefused
from jobwire.boundary import Completed, ConsumerSettings, Verdict
from jobwire.native import PgBossWorker
from jobwire.options import NewJob

from .node import NodeBoss, Peer


async def states(rows, queue):
    found = await rows("SELECT state, count(*) AS n FROM job WHERE name = %s GROUP BY 1", queue)
    return {row["state"]: row["n"] for row in found}


async def test_node_runs_what_python_added_and_python_reads_the_result(node, queue):
    added = await queue.add({"n": 21})
    async with node.work(queue.name, "double"):
        assert await added.wait(timeout=20) == {"doubled": 42}


async def test_python_runs_what_node_added_and_node_reads_the_result(node, queue, work):
    async def double(job):
        return {"doubled": job.data["n"] * 2}

    async with work(double):
        job_id = await node.call("send", queue.name, {"n": 21})

        async def completed():
            job = await node.call("getJobById", queue.name, job_id)
            return job if job["state"] == "completed" else None

        job = await eventually(completed)
    assert job["output"] == {"doubled": 42}


@pytest.mark.parametrize(("result", "stored"), [("a text", {"value": "a text"}), ([1], {"value": [1]}), (None, None)])
async def test_results_that_are_no_objects_are_wrapped_as_node_does(node, queue, work, result, stored):
    async def handler(job):
        return result

    added = await queue.add({})
    async with work(handler):
        assert await added.wait(timeout=20) == result
    assert (await node.call("getJobById", queue.name, added.id))["output"] == stored


async def test_a_text_from_a_node_handler_reads_as_that_text(node, queue):
    added = await queue.add({})
    async with node.work(queue.name, "text"):
        assert await added.wait(timeout=20) == "a text"


async def test_a_failure_in_node_shows_its_message_in_python(node, queue):
    added = await queue.add({"n": 1}, attempts=1)
    async with node.work(queue.name, "fail"):

        async def failed():
            job = await queue.get(added.id)
            return job if job.state is State.FAILED else None

        job = await eventually(failed)
    assert job.error == 'no luck with {"n":1}'
    assert "peer.mjs" in job.stacktrace[0]


async def test_a_failure_in_python_is_retried_by_node(node, queue, work):
    failed = asyncio.Event()

    async def handler(job):
        failed.set()
        raise RuntimeError("not here")

    added = await queue.add({"n": 4}, attempts=2)
    async with work(handler):
        await failed.wait()
    async with node.work(queue.name, "double"):
        assert await added.wait(timeout=20) == {"doubled": 8}
    job = await node.call("getJobById", queue.name, added.id)
    assert (job["retryCount"], job["state"]) == (1, "completed")


async def test_a_mixed_fleet_runs_every_job_once(node, queue, work, rows):
    await queue.add_many([NewJob({"n": n}) for n in range(150)])
    await node.call("insert", queue.name, [{"data": {"n": n}} for n in range(150)])
    ran: list[str] = []

    async def handler(job):
        ran.append(job.id)
        return {"doubled": job.data["n"] * 2}

    async with work(handler, concurrency=3), node.work(queue.name, "double", {"batchSize": 5}) as worker:

        async def done():
            return await states(rows, queue.name) == {"completed": 300}

        await eventually(done, within=40)
        by_node = await worker.runs()
    assert len(ran) + len(by_node) == len({*ran, *by_node}) == 300
    assert by_node
    assert ran


async def test_python_rings_for_node(node, peer, unique, queue, rows):
    awake = NodeBoss(peer, unique, "listening", useListenNotify=True)
    await awake.start()
    options = {"pollingIntervalSeconds": 30, "notifyPollingIntervalSeconds": 60}
    try:
        async with awake.work(queue.name, "double", options):

            async def listening():
                return await rows("SELECT 1 FROM pg_stat_activity WHERE query ILIKE 'listen%%pgboss%%'")

            await eventually(listening)
            added = await queue.add({"n": 1})
            assert await added.wait(timeout=10) == {"doubled": 2}
    finally:
        await awake.stop()


async def test_node_rings_for_python(node, queue, work, eventually_idle, no_polling):
    async def handler(job):
        return job.data

    async with work(handler) as worker:
        await eventually_idle(worker)
        job_id = await node.call("send", queue.name, {"n": 1})
        assert await queue.wait(job_id, timeout=20) == {"n": 1}


async def test_a_queue_without_a_bell_is_looked_at(node, connection, work):
    from jobwire import Queue

    await node.call("createQueue", "quiet", {"notify": False})
    async with (
        Queue("quiet", connection) as queue,
        work(lambda job: job.data, queue="quiet", native=PgBossWorker(poll=0.2)),
    ):
        job_id = await node.call("send", "quiet", {"n": 1})
        assert await queue.wait(job_id, timeout=10) == {"n": 1}


async def test_a_stale_node_attempt_changes_nothing_of_ours(node, queue, connection, rows):
    """Node fetched, its heartbeat ended, Python took the job back and runs it: Node's late word is void."""
    job_id = await node.call("send", queue.name, {"n": 1}, {"heartbeatSeconds": 10})
    [fetched] = await node.call("fetch", queue.name)
    await rows("UPDATE job SET heartbeat_on = now() - interval '1 minute' WHERE id = %s RETURNING 1", job_id)
    consumer = connection.backend.consumer(ConsumerSettings(queue=queue.name, worker_id="w"))
    await consumer.settle([], claim=0)
    recovered = [job for duty in consumer.duties()[:1] for job in (await duty.run()).recovered]
    assert recovered == [job_id]
    [claim] = (await consumer.settle([], claim=1)).claims
    await node.call("complete", queue.name, {"id": job_id, "retryCount": fetched["retryCount"]}, {"by": "node"})
    assert (await queue.get(job_id)).state is State.ACTIVE
    settled = await consumer.settle([Completed(claim, b'{"by":"python"}')], claim=0)
    assert list(settled.verdicts) == [Verdict.COMPLETED]
    assert (await queue.get(job_id)).result == {"by": "python"}


async def test_a_stale_python_attempt_changes_nothing_of_nodes(node, queue, connection, rows):
    job_id = await node.call("send", queue.name, {"n": 1})
    consumer = connection.backend.consumer(ConsumerSettings(queue=queue.name, worker_id="w"))
    [claim] = (await consumer.settle([], claim=1)).claims
    await node.call("fail", queue.name, job_id, {"message": "taken away"})
    [fetched] = await node.call("fetch", queue.name)
    assert fetched["id"] == job_id
    settled = await consumer.settle([Completed(claim, b'{"by":"python"}')], claim=0)
    assert list(settled.verdicts) == [Verdict.LOST]
    assert list(await consumer.extend([claim])) == [claim]
    assert (await rows("SELECT state FROM job WHERE id = %s", job_id)) == [{"state": "active"}]


async def test_node_takes_a_job_back_from_a_dead_python_worker(node, queue, connection, rows):
    """Our lease is pg-boss's heartbeat, so Node's own sweep sees that nobody renews it."""
    job_id = await node.call("send", queue.name, {"n": 1})
    consumer = connection.backend.consumer(ConsumerSettings(queue=queue.name, worker_id="w", lease=1))
    assert len((await consumer.settle([], claim=1)).claims) == 1

    async def taken_back():
        await rows("UPDATE queue SET monitor_claim_on = NULL, monitor_on = NULL RETURNING 1")
        await node.call("supervise", queue.name)
        return (await rows("SELECT state FROM job WHERE id = %s", job_id)) == [{"state": "retry"}]

    await eventually(taken_back)
    [fetched] = await node.call("fetch", queue.name)
    assert (fetched["id"], fetched["retryCount"]) == (job_id, 1)


async def test_node_lets_the_last_attempt_of_a_dead_python_worker_run_again(node, queue, connection, work, rows):
    """Whichever sweep comes first, a job with no attempts left is not failed because its worker died."""
    job_id = await node.call("send", queue.name, {"n": 1}, {"retryLimit": 0})
    consumer = connection.backend.consumer(ConsumerSettings(queue=queue.name, worker_id="w", lease=1))
    assert len((await consumer.settle([], claim=1)).claims) == 1
    await eventually(lambda: _swept_by_node(node, queue, rows, job_id))

    async def handler(job):
        raise RuntimeError(f"attempt {job.attempts_made + 1} of {job.attempts}")

    async with work(handler, native=PgBossWorker(supervise=False), lease=1):
        await eventually(lambda: rows("SELECT 1 FROM job WHERE id = %s AND state = 'failed'", job_id))
    [row] = await rows("SELECT output->>'message' AS message, heartbeat_seconds FROM job WHERE id = %s", job_id)
    assert row == {"message": "attempt 2 of 2", "heartbeat_seconds": None}


async def test_a_job_that_node_takes_back_from_dead_python_workers_again_and_again_fails(node, queue, connection, rows):
    job_id = await node.call("send", queue.name, {"n": 1}, {"retryLimit": 0})
    settings = ConsumerSettings(queue=queue.name, worker_id="w", lease=1, max_stalled=2)
    consumer = connection.backend.consumer(settings)
    doomed = []
    for _ in range(4):
        [claim] = (await consumer.settle([], claim=1)).claims
        doomed.append(claim.doomed)
        if claim.doomed is None:
            await eventually(lambda: _swept_by_node(node, queue, rows, job_id))
        else:
            break
    assert doomed == [None, None, None, "job stalled more than allowable limit"]


async def _swept_by_node(node, queue, rows, job_id):
    await rows("UPDATE queue SET monitor_claim_on = NULL, monitor_on = NULL RETURNING 1")
    await node.call("supervise", queue.name)
    [row] = await rows("SELECT state FROM job WHERE id = %s", job_id)
    assert row["state"] != "failed"
    return row["state"] == "retry"


async def test_a_job_for_the_next_slot_is_stored_as_node_stores_it(node, queue, connection, rows):
    ours = Queue("ours", connection)
    await node.call("createQueue", "ours", {})
    options = {"singletonSeconds": 3600, "singletonKey": "k", "singletonNextSlot": True}
    await rows("SELECT pg_sleep(CASE WHEN extract(minute FROM now()) = 59 THEN 61 ELSE 0 END)")
    theirs = [await node.call("send", queue.name, {"n": n}, options) for n in range(3)]
    added = [await ours.add({"n": n}, extra=options) for n in range(3)]
    assert [one is not None for one in theirs] == [True, True, False]
    look = (
        "SELECT singleton_on, extract(epoch FROM start_after - now())::integer / 5 AS wait FROM job"
        " WHERE name = %s ORDER BY singleton_on"
    )
    assert await rows(look, "ours") == await rows(look, queue.name)
    assert [(await ours.get(job.id)) is not None for job in added[:2]] == [True, True]


async def test_flow_children_of_either_side_run_after_their_parents(node, boss, queue, work, rows):
    from jobwire.backends.pgboss import GraphJob

    order: list[str] = []

    async def handler(job):
        order.append(job.data["step"])

    await boss.flow(
        [GraphJob("a", queue.name, {"step": "a"}), GraphJob("b", queue.name, {"step": "b"}, depends_on=["a"])]
    )
    flow = [{"ref": "x", "name": queue.name, "data": {"step": "x"}}]
    flow.append({"ref": "y", "name": queue.name, "data": {"step": "y"}, "dependsOn": ["x"]})
    await node.call("flow", flow)
    async with work(handler, native=PgBossWorker(flow_interval=0.2)) as worker:

        async def all_ran():
            return len(order) == 4

        await eventually(all_ran)
    assert order.index("a") < order.index("b")
    assert order.index("x") < order.index("y")
    assert worker.stats.completed == 4


async def test_what_is_published_reaches_subscribers_of_either_side(node, boss, queue, rows):
    await node.call("createQueue", "copies", {})
    await node.call("subscribe", "news", "copies")
    await boss.subscribe("news", queue.name)
    await node.call("publish", "news", {"from": "node"})
    answers = await boss.publish("news", {"from": "python"})
    assert {name: bool(added.id) for name, added in answers.items()} == {"copies": True, queue.name: True}
    found = await rows("SELECT name, data->>'from' AS sender FROM job ORDER BY 1, 2")
    assert [(row["name"], row["sender"]) for row in found] == [
        ("copies", "node"), ("copies", "python"), (queue.name, "node"), (queue.name, "python"),
    ]  # fmt: skip
    assert await boss.unsubscribe("news", queue.name) is True
    assert list(await boss.publish("news", {})) == ["copies"]


async def test_an_add_that_is_refused_says_why(node, boss, connection):
    from jobwire import Queue

    await node.call("createQueue", "one", {"policy": "exclusive"})
    async with Queue("one", connection) as queue:
        first = await queue.add({})
        second = await queue.add({})
        assert (second.add_status, second.id) == (AddStatus.THROTTLED, first.id)
    with pytest.raises(StoreRefused, match="there is no queue 'nowhere'"):
        await boss.send("nowhere", {})
    await node.call("createQueue", "fifo", {"policy": "key_strict_fifo"})
    with pytest.raises(InvalidOption, match="key_strict_fifo takes no job without a key"):
        await boss.send("fifo", {})


async def test_two_queues_deleted_by_either_side_are_gone_for_both(node, boss, rows):
    for name, partition in (("shared", False), ("own", True)):
        await boss.create_queue(name, partition=partition)
        await boss.send(name, {})
        await boss.delete_queue(name)
        assert await node.call("getQueue", name) is None
    with pytest.raises(StoreRefused, match="there is no queue 'own'"):
        await boss.send("own", {})


@pytest.fixture
def eventually_idle():
    async def wait(worker):
        async def idle():
            return worker.stats.calls > 0

        await eventually(idle)

    return wait


@pytest.fixture(scope="module")
def second_peer(jobwire_postgres):
    with Peer(jobwire_postgres.url) as peer:
        yield peer


async def test_both_schedulers_make_one_job_per_minute(*, node, peer, unique, queue, work, rows):
    ran: list[object] = []

    async def handler(job):
        ran.append(job.data)

    await queue.schedule("tick", cron="* * * * *", data={"from": "schedule"})
    scheduler = NodeBoss(
        peer, unique, "scheduling", schedule=True, cronMonitorIntervalSeconds=1, cronWorkerIntervalSeconds=1
    )
    await scheduler.start()
    try:
        async with work(handler, native=PgBossWorker(cron_monitor_interval=0.5)):

            async def passes_of_both():
                # Every stamp is a pass of one of them; after several, what was due must have been made once only.
                stamps.add((await rows("SELECT cron_on FROM version"))[0]["cron_on"])
                return len(stamps) >= 5 and ran

            stamps: set[object] = set()
            await eventually(passes_of_both, within=40)
    finally:
        await scheduler.stop()
    notes = await rows("SELECT singleton_on, count(*) AS n FROM job WHERE name = '__pgboss__send-it' GROUP BY 1")
    made = await rows("SELECT count(*) AS n FROM job WHERE name = %s", queue.name)
    assert {note["n"] for note in notes} == {1}
    assert made[0]["n"] == len(notes)


async def test_both_supervisors_do_each_duty_once(*, node, peer, unique, queue, work, rows):
    """An overdue job is failed once, whoever sees it first, and its copy arrives once in the dead letter queue."""
    await node.call("createQueue", "dead", {})
    for n in range(20):
        await node.call("send", queue.name, {"n": n}, {"retryLimit": 0, "deadLetter": "dead", "expireInSeconds": 1})
    await node.call("fetch", queue.name, {"batchSize": 20})
    supervisor = NodeBoss(
        peer, unique, "watching", supervise=True, superviseIntervalSeconds=1, monitorIntervalSeconds=1
    )
    await supervisor.start()

    async def handler(job):
        return None

    try:
        async with work(handler, native=PgBossWorker(monitor_interval=0.5)):

            async def all_failed():
                return (await states(rows, queue.name)).get("failed") == 20

            await eventually(all_failed, within=30)
    finally:
        await supervisor.stop()
    assert await states(rows, "dead") == {"created": 20}
    outputs = await rows("SELECT DISTINCT output FROM job WHERE name = %s", queue.name)
    assert outputs == [{"output": {"value": {"message": "job timed out"}}}]
