"""A flow that we add, park or take apart leaves the store as Node BullMQ 5.62 leaves it, to the last event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jobwire.boundary import Backend, Completed, Failed, Parked, Throttled, Verdict
from jobwire.flow import FlowJob, add_trees, prepare_tree
from jobwire.model import JobKey
from jobwire.options import Keep, Parent

from .dump import dump
from .jobs import claim, consumer
from .peer import node

QUEUE = 'const q = queueOf(p); const q2 = queueOf(p, "q2"); const flows = new FlowProducer({ connection, prefix: p });'
WORKER = """
const token = "00000000-0000-4000-8000-000000000000:0";
const w = new Worker("q", null, { connection, prefix: p, autorun: false }); w.on("error", () => {});
const next = () => w.getNextJob(token, { block: false });
"""
WAITING_PARENT = 'await q.waitUntilReady(); await q2.waitUntilReady(); await q.add("P", { step: 1 }, { jobId: "P" });'


def flow(*roots: FlowJob) -> Callable[[Backend], Awaitable[object]]:
    return lambda backend: add_trees(backend, [prepare_tree(backend, root) for root in roots])


def _deep() -> FlowJob:
    """Three levels, siblings with and without children; three queues, since chance orders the parents of one."""
    inner = [FlowJob("q", {"n": n}, name=f"leaf{n}", id=f"leaf{n}") for n in (1, 2)]
    return FlowJob(
        "q",
        {"a": "é"},
        name="root",
        id="root",
        children=[
            FlowJob("q2", name="left", id="left", data={}, children=inner),
            FlowJob("q2", 5, name="middle", id="middle", priority=3),
            FlowJob(
                "q3", None, name="right", id="right", children=[FlowJob("q2", {}, name="last", id="last", lifo=True)]
            ),
        ],
    )


DEEP = """
const leaf = (n) => ({ name: `leaf${n}`, queueName: "q", data: { n }, opts: { jobId: `leaf${n}` } });
await flows.add({ name: "root", queueName: "q", data: { a: "é" }, opts: { jobId: "root" }, children: [
  { name: "left", queueName: "q2", data: {}, opts: { jobId: "left" }, children: [leaf(1), leaf(2)] },
  { name: "middle", queueName: "q2", data: 5, opts: { jobId: "middle", priority: 3 } },
  { name: "right", queueName: "q3", data: null, opts: { jobId: "right" }, children: [
    { name: "last", queueName: "q2", data: {}, opts: { jobId: "last", lifo: true } }] }] });
"""
FOUR = """
const root = { name: "R", queueName: "q2", data: {}, opts: { jobId: "R", delay: 5000, priority: 2, attempts: 3 } };
await flows.add({ ...root, children: [
  { name: "f", queueName: "q", data: {}, opts: { jobId: "f", failParentOnFailure: true } },
  { name: "c", queueName: "q", data: {}, opts: { jobId: "c", continueParentOnFailure: true, delay: 60000 } },
  { name: "i", queueName: "q", data: {}, opts: { jobId: "i", ignoreDependencyOnFailure: true, removeOnComplete: 5 } },
  { name: "r", queueName: "q", data: {}, opts: { jobId: "r", removeDependencyOnFailure: true } },
  { name: "w", queueName: "q", data: {}, opts: { jobId: "w" } }] });
"""


def _four() -> FlowJob:
    ways: dict[str, Any] = {"f": "fail", "c": "continue", "i": "ignore", "r": "remove", "w": "wait"}
    extra: dict[str, dict[str, Any]] = {"c": {"delay": 60}, "i": {"keep_completed": 5}}
    children = [FlowJob("q", {}, name=n, id=n, on_failure=way, **extra.get(n, {})) for n, way in ways.items()]
    return FlowJob("q2", {}, name="R", id="R", delay=5, priority=2, attempts=3, children=children)


def _one(name: str, child: str, queue: str = "q") -> FlowJob:
    return FlowJob(queue, {}, name=name, id=name, children=[FlowJob("q2", {}, name=child, id=child)])


NODE = 'name: "%s", queueName: "%s", data: {}, opts: { jobId: "%s" }'


def _node_one(name: str, child: str, queue: str = "q") -> str:
    return f"{{ {NODE % (name, queue, name)}, children: [{{ {NODE % (child, 'q2', child)} }}] }}"


ADDS = {
    "a tree across queues": ("", DEEP, flow(_deep())),
    "ids that nobody gave": (
        "",
        """const child = { name: "c", queueName: "q2", data: {} };
        await flows.add({ name: "R", queueName: "q", data: {}, children: [child] });""",
        flow(FlowJob("q", {}, name="R", children=[FlowJob("q2", {}, name="c")])),
    ),
    "every way to fail": ("", FOUR, flow(_four())),
    "a single job": (
        "",
        'await flows.add({ name: "R", queueName: "q", data: {}, opts: { jobId: "R", delay: 9000 } });',
        flow(FlowJob("q", {}, name="R", id="R", delay=9)),
    ),
    "several trees at once": (
        "",
        f"await flows.addBulk([{_node_one('A', 'a')}, {_node_one('B', 'b')}]);",
        flow(_one("A", "a"), _one("B", "b")),
    ),
    "into paused queues": ("await q.pause(); await q2.pause();", DEEP, flow(_deep())),
    "below a job that is there": (
        WAITING_PARENT,
        """const opts = { jobId: "A", failParentOnFailure: true, parent: { id: "P", queue: `${p}:q` } };
        const child = { name: "a", queueName: "q", data: {}, opts: { jobId: "a" } };
        await flows.add({ name: "A", queueName: "q2", data: {}, opts, children: [child] });""",
        flow(
            FlowJob(
                "q2",
                {},
                name="A",
                id="A",
                parent=Parent("P", "q", "fail"),
                children=[FlowJob("q", {}, name="a", id="a")],
            )
        ),
    ),
    "a child that is there already": (
        'await q2.add("a", {}, { jobId: "a" });',
        f"await flows.add({_node_one('A', 'a')});",
        flow(_one("A", "a")),
    ),
    "a child that has completed already": (
        'await q2.add("a", {}, { jobId: "a" }); await work(p, 1, async () => 7, "q2");',
        f"await flows.add({_node_one('A', 'a')});",
        flow(_one("A", "a")),
    ),
    "a root that is there already": (
        'await q.add("A", {}, { jobId: "A" });',
        f"await flows.add({_node_one('A', 'a')});",
        flow(_one("A", "a")),
    ),
}


@pytest.mark.parametrize("case", ADDS)
async def test_adding_leaves_what_node_leaves(case: str, same_as_node) -> None:
    arrange, act, ours = ADDS[case]
    await same_as_node(QUEUE + arrange, f"{QUEUE} {act}", ours)


@pytest.mark.parametrize("case", sorted(ADDS.keys() - {"into paused queues"}))
async def test_adding_leaves_what_node_6_leaves(case: str, jobwire_valkey, prefix, backend, redis) -> None:
    """Into a paused queue it would not: BullMQ 6 leaves jobs in `wait`."""
    arrange, act, ours = ADDS[case]
    theirs = f"{prefix}-node"
    script = f"for (const p of prefixes) {{ {QUEUE} {arrange} }} {{ const p = prefixes[1]; {QUEUE} {act} }}"
    await node(jobwire_valkey.url, [prefix, theirs], script, peer="bullmq-6")
    await ours(backend)
    assert await dump(redis, prefix) == await dump(redis, theirs)


async def _park(backend: Backend, *children: FlowJob) -> Verdict:
    worker = consumer(backend)
    [one] = await claim(worker)
    below = [prepare_tree(backend, child, below=JobKey("q", one.job.id)) for child in children]
    await add_trees(backend, below)
    verdict = (await worker.settle([Parked(one)], 0)).verdicts[0]
    await worker.close()
    return verdict


ADD_CHILD = """
const parent = { id: "P", queue: `${p}:q` };
const j = await next(); await q2.add("c", {}, { jobId: "c", ignoreDependencyOnFailure: true, parent });
"""


async def test_parking_a_running_parent_leaves_what_node_leaves(same_as_node) -> None:
    act = f"{QUEUE} {WORKER} {ADD_CHILD} await j.moveToWaitingChildren(token);"
    child = FlowJob("q2", {}, name="c", id="c", on_failure="ignore")
    await same_as_node(QUEUE + WAITING_PARENT, act, lambda backend: _park(backend, child))


async def test_a_parked_parent_runs_again_as_node_has_it(same_as_node) -> None:
    act = f"""{QUEUE} {WORKER} {ADD_CHILD} await j.moveToWaitingChildren(token);
    const w2 = new Worker("q2", null, {{ connection, prefix: p, autorun: false }}); w2.on("error", () => {{}});
    const c = await w2.getNextJob(token, {{ block: false }}); await c.moveToCompleted({{ ok: 1 }}, token, false);
    const again = await next(); await again.moveToCompleted("done", token, false);"""

    async def ours(backend: Backend) -> None:
        await _park(backend, FlowJob("q2", {}, name="c", id="c", on_failure="ignore"))
        for queue, value in (("q2", b'{"ok":1}'), ("q", b'"done"')):
            worker = consumer(backend, queue)
            [one] = await claim(worker)
            await worker.settle([Completed(one, value)], 0)
            await worker.close()

    await same_as_node(QUEUE + WAITING_PARENT, act, ours)


async def test_a_parent_without_children_that_asks_to_wait_runs_again_at_once(backend, prefix) -> None:
    await add_trees(backend, [prepare_tree(backend, FlowJob("q", {}, id="P"))])
    assert await _park(backend) is Verdict.PARKED
    worker = consumer(backend)
    [one] = await claim(worker)
    assert (one.job.id, one.job.attempts_made) == ("P", 0)
    await worker.close()


async def test_a_parent_whose_child_has_failed_it_fails_when_it_asks_to_wait(backend) -> None:
    await add_trees(backend, [prepare_tree(backend, FlowJob("q", {}, id="P", attempts=3))])
    worker = consumer(backend)
    [parent] = await claim(worker)
    child = FlowJob("q2", {}, id="c", on_failure="fail")
    await add_trees(backend, [prepare_tree(backend, child, below=JobKey("q", "P"))])
    pages = consumer(backend, "q2")
    [one] = await claim(pages)
    await pages.settle([Failed(one, "boom", final=True)], 0)
    assert (await worker.settle([Parked(parent)], 0)).verdicts == [Verdict.FAILED]
    await worker.close()
    await pages.close()


async def test_a_throttled_job_goes_back_as_node_has_it(same_as_node) -> None:
    act = f"{QUEUE} {WORKER} const j = await next(); await w.rateLimit(60000); await j.moveToWait(token);"

    async def ours(backend: Backend) -> None:
        worker = consumer(backend)
        [one] = await claim(worker)
        settled = await worker.settle([Throttled(one, 60.0)], 1)
        assert (list(settled.claims), settled.blocked_for) == ([], 60.0)
        await worker.close()

    await same_as_node(QUEUE + WAITING_PARENT, act, ours)


@pytest.mark.parametrize("name", ["left", "root"])
async def test_a_job_removed_without_its_children_leaves_what_node_leaves(name: str, same_as_node) -> None:
    queue = {"left": "q2", "root": "q"}[name]
    act = f'await {queue}.remove("{name}", {{ removeChildren: false }});'
    await same_as_node(QUEUE + DEEP, f"{QUEUE} {act}", lambda backend: backend.flows.remove_alone(queue, [name]))


async def test_keep_options_survive_in_the_options_of_a_child(backend, redis, keys) -> None:
    child = FlowJob("q", 1, id="c", keep_completed=Keep(count=3, age=60))
    await add_trees(backend, [prepare_tree(backend, FlowJob("q2", 1, id="R", children=[child]))])
    assert b'"removeOnComplete":{"count":3,"age":60}' in await redis.hget(keys.job("c"), "opts")


READ = """
const flows = new FlowProducer({ connection, prefix: prefixes[0] });
const shape = ({ job, children = [] }) => [job.name, ...children.map(shape).sort()];
say(shape(await flows.getFlow({ id: "root", queueName: "q" })));
say(await (await Job.fromId(queueOf(prefixes[0]), "root")).getDependenciesCount());
"""


@pytest.mark.parametrize("peer", ["bullmq", "bullmq-6"])
async def test_node_reads_the_tree_that_we_added(peer: str, jobwire_valkey, prefix, backend) -> None:
    await flow(_deep())(backend)
    shape, counts = await node(jobwire_valkey.url, [prefix], READ, peer=peer)
    assert shape == ["root", ["left", ["leaf1"], ["leaf2"]], ["middle"], ["right", ["last"]]]
    assert counts["unprocessed"] == 3


async def test_a_parent_waits_for_all_children_of_its_tree_though_the_first_was_done_before(
    backend, redis, keys
) -> None:
    """BullMQ 5.62 would let it run at once; its successors don't."""
    await flow(FlowJob("q2", {}, id="done"))(backend)
    worker = consumer(backend, "q2")
    [one] = await claim(worker)
    await worker.settle([Completed(one, b"7")], 0)
    await worker.close()
    await flow(FlowJob("q", {}, id="R", children=[FlowJob("q2", {}, id="done"), FlowJob("q2", {}, id="new")]))(backend)
    assert await redis.zscore(keys.waiting_children, "R") is not None
    children = await backend.flows.children("q", "R")
    assert (list(children.values.values()), children.pending) == ([7], (JobKey("q2", "new"),))
