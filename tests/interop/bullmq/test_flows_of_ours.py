"""Flows that jobwire adds, worked by Node, and handlers of either side that add children as they run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from awaiting import eventually
from jobwire import ActiveJob, Connection, Flow, FlowJob, JobKey, Queue, Rate, State, Unrecoverable, Worker

from ..peer import NodeJob, NodeQueue

CHILDREN = "pages"
Work = Callable[..., Worker]
Finished = Callable[[str], Awaitable[NodeJob]]


@pytest.fixture
async def flow(connection: Connection) -> AsyncIterator[Flow]:
    async with Flow(connection) as flow:
        yield flow


@pytest.fixture
def pages(node: NodeQueue, unique: str) -> NodeQueue:
    """The queue of the children, through Node."""
    return NodeQueue(node.peer, unique, CHILDREN)


def _book(parent_queue: str, *children: FlowJob) -> FlowJob:
    return FlowJob(parent_queue, {"isbn": 1}, name="book", children=children)


async def test_node_works_a_whole_flow_of_ours(
    flow: Flow, node: NodeQueue, pages: NodeQueue, finished_in_node: Finished
) -> None:
    chapter = FlowJob(CHILDREN, "chapter", children=[FlowJob(CHILDREN, "page")])
    tree = await flow.add(_book(node.name, chapter, FlowJob(CHILDREN, "cover", priority=2)))
    async with pages.work("reflect"), node.work("gather"):
        book = await finished_in_node(tree.job.id)
    assert book.state == "completed"
    assert sorted(book.returnvalue["values"]) == ["chapter", "cover"]
    assert await tree.job.wait(10) == book.returnvalue


async def test_a_child_that_fails_in_node_does_to_our_parent_what_we_asked_for(
    flow: Flow, queue: Queue, node: NodeQueue, pages: NodeQueue, work: Work
) -> None:
    async def handle(job: ActiveJob) -> Any:
        return list((await job.children()).ignored.values())

    doomed = await flow.add(_book(node.name, FlowJob(CHILDREN, 1, id="bad", on_failure="fail")))
    lenient = await flow.add(_book(node.name, FlowJob(CHILDREN, 2, on_failure="ignore")))
    careless = await flow.add(_book(node.name, FlowJob(CHILDREN, 3, on_failure="remove")))
    patient = await flow.add(_book(node.name, FlowJob(CHILDREN, 4)))
    async with pages.work("refuse", label="node"), work(handle):
        assert await lenient.job.wait(10) == ["node refuses"]
        assert await careless.job.wait(10) == []
        with pytest.raises(Exception, match=f":{CHILDREN}:bad failed"):
            await doomed.job.wait(10)
    assert (await queue.get(patient.job.id)).state is State.WAITING_CHILDREN
    assert (await queue.children(doomed.job.id)).failed == (JobKey(CHILDREN, "bad"),)


async def _parked(worker: Worker) -> None:
    await eventually(lambda: worker.stats.parked == 1)


async def test_our_handler_parks_its_job_for_children_that_node_works(
    queue: Queue, pages: NodeQueue, work: Work
) -> None:
    async def handle(job: ActiveJob) -> Any:
        if not len(await job.children()):
            await job.add_children(*(FlowJob(CHILDREN, n) for n in range(3)))
        await job.wait_for_children()
        return sorted((await job.children_values()).values())

    job = await queue.add("book")
    async with work(handle) as worker:
        await _parked(worker)
        async with pages.work("reflect"):
            assert await job.wait(10) == [0, 1, 2]


async def test_a_parked_job_of_ours_is_taken_up_by_node(
    queue: Queue, node: NodeQueue, pages: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    async def handle(job: ActiveJob) -> None:
        await job.add_children(FlowJob(CHILDREN, "page"))
        await job.wait_for_children()

    job = await queue.add("book")
    async with work(handle) as worker:
        await _parked(worker)
    async with pages.work("reflect"), node.work("gather"):
        book = await finished_in_node(job.id)
    assert (book.returnvalue["values"], book.attemptsMade, book.attemptsStarted) == (["page"], 1, 2)


async def test_a_tree_that_node_added_is_read_whole(flow: Flow, node: NodeQueue) -> None:
    leaf = {"queueName": CHILDREN, "name": "page", "data": 1}
    inner = {"queueName": CHILDREN, "name": "chapter", "data": 2, "children": [leaf]}
    added = await node.add_flow({"queueName": node.name, "name": "book", "data": {}, "children": [inner]})
    tree = await flow.get(node.name, added["id"])
    assert (tree.job.name, tree.children[0].job.name, tree.children[0].children[0].job.name) == (
        "book",
        "chapter",
        "page",
    )
    assert tree.children[0].job.id == added["children"][0]["id"]


async def test_the_concurrency_that_we_give_a_queue_holds_back_node(queue: Queue, node: NodeQueue) -> None:
    await queue.admin.limit_concurrency(1)
    cursor = await queue.admin.publish("begin")
    ids = [(await queue.add(n)).id for n in range(4)]
    async with node.work("slow", settings={"ms": 30}, concurrency=10):
        for job_id in ids:
            await queue.wait(job_id, 10)
    kinds = []
    async with asyncio.timeout(10):
        async for event in queue.events(since=cursor):
            if event.native_type in ("active", "completed"):
                kinds.append(event.native_type)
            if len(kinds) == 8:
                break
    assert kinds == ["active", "completed"] * 4


async def test_the_rate_that_we_give_a_queue_holds_back_node(queue: Queue, node: NodeQueue) -> None:
    await queue.admin.limit_rate(Rate(1, per=0.3))
    ids = [(await queue.add(n)).id for n in range(3)]
    began = datetime.now(UTC)
    async with node.work("reflect", concurrency=10):
        for job_id in ids:
            await queue.wait(job_id, 20)
    ends = sorted([(await queue.get(job_id)).finished_at for job_id in ids])
    assert (ends[2] - began).total_seconds() >= 0.59, ends  # two windows lie before the third job


async def test_a_retry_that_resets_attempts_gives_node_all_of_them(
    queue: Queue, node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    async def refuse(job: ActiveJob) -> None:
        raise Unrecoverable("no")

    job = await queue.add(1, attempts=2)
    async with work(refuse):
        await finished_in_node(job.id)
    await queue.admin.retry(job.id, reset_attempts=True)
    async with node.work("fail", settings={"times": 1}):
        done = await finished_in_node(job.id)
    assert (done.state, done.returnvalue["run"]) == ("completed", 2)
