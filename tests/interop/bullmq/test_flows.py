"""A flow of Node's whose children jobwire works: the parent is told, exactly as a Node worker would have told it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from awaiting import eventually
from jobwire import ActiveJob, Parent, Queue, State, Unrecoverable, Worker

from ..peer import NodeJob, NodeQueue

CHILDREN = "pages"
Work = Callable[..., Worker]
Finished = Callable[[str], Awaitable[NodeJob]]


def _flow(parent_queue: str, *children: dict[str, Any]) -> dict[str, Any]:
    nodes = [
        {"queueName": CHILDREN, "name": "page", "data": one["data"], "opts": one.get("opts", {})} for one in children
    ]
    return {"queueName": parent_queue, "name": "book", "data": {}, "children": nodes}


async def _handle(job: ActiveJob) -> Any:
    if job.data == "torn":
        raise Unrecoverable("page is torn")
    return f"read {job.data}"


async def test_a_node_parent_runs_when_jobwire_has_worked_its_children(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    flow = await node.add_flow(_flow(node.name, {"data": 1}, {"data": 2, "opts": {"priority": 3}}, {"data": 3}))
    assert (await node.get(flow["id"])).state == "waiting-children"
    async with work(_handle, queue=CHILDREN), node.work("gather"):
        parent = await finished_in_node(flow["id"])
    assert parent.state == "completed"
    assert sorted(parent.returnvalue["values"]) == ["read 1", "read 2", "read 3"]


async def test_a_node_grandparent_is_reached_through_levels_that_jobwire_works(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    chapter = {"queueName": CHILDREN, "name": "chapter", "data": "chapter"}
    chapter["children"] = [{"queueName": CHILDREN, "name": "page", "data": "page"}]
    flow = await node.add_flow({"queueName": node.name, "name": "book", "data": {}, "children": [chapter]})
    async with work(_handle, queue=CHILDREN), node.work("gather"):
        book = await finished_in_node(flow["id"])
    assert book.returnvalue["values"] == ["read chapter"]


async def test_a_child_that_fails_in_jobwire_fails_its_parent_if_so_asked(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    torn = {"data": "torn", "opts": {"failParentOnFailure": True}}
    flow = await node.add_flow(_flow(node.name, torn, {"data": 2, "opts": {"delay": 600_000}}))
    async with work(_handle, queue=CHILDREN), node.work("gather"):
        parent = await finished_in_node(flow["id"])
    child = flow["children"][0]["id"]
    assert parent.state == "failed"
    assert parent.failedReason.endswith(f":{CHILDREN}:{child} failed")


async def test_a_child_that_fails_in_jobwire_lets_its_parent_go_on_at_once_if_so_asked(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    torn = {"data": "torn", "opts": {"continueParentOnFailure": True}}
    flow = await node.add_flow(_flow(node.name, torn, {"data": 2, "opts": {"delay": 600_000}}))
    async with work(_handle, queue=CHILDREN), node.work("gather", settings={"giveUpPending": True}):
        parent = await finished_in_node(flow["id"])
    assert (parent.state, parent.returnvalue) == (
        "completed",
        {"by": "node", "values": [], "failures": ["page is torn"]},
    )


async def test_a_child_that_fails_in_jobwire_is_ignored_by_its_parent_if_so_asked(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    torn = {"data": "torn", "opts": {"ignoreDependencyOnFailure": True}}
    flow = await node.add_flow(_flow(node.name, torn, {"data": 2}))
    async with work(_handle, queue=CHILDREN), node.work("gather"):
        parent = await finished_in_node(flow["id"])
    assert (parent.state, parent.returnvalue) == (
        "completed",
        {"by": "node", "values": ["read 2"], "failures": ["page is torn"]},
    )


async def test_a_child_that_fails_in_jobwire_is_forgotten_by_its_parent_if_so_asked(
    node: NodeQueue, work: Work, finished_in_node: Finished
) -> None:
    torn = {"data": "torn", "opts": {"removeDependencyOnFailure": True}}
    flow = await node.add_flow(_flow(node.name, torn, {"data": 2}))
    async with work(_handle, queue=CHILDREN), node.work("gather"):
        parent = await finished_in_node(flow["id"])
    assert (parent.state, parent.returnvalue) == (
        "completed",
        {"by": "node", "values": ["read 2"], "failures": []},
    )


async def test_a_parent_without_an_option_keeps_waiting_for_a_child_that_failed_in_jobwire(
    node: NodeQueue, queue: Queue, work: Work, unique: str
) -> None:
    flow = await node.add_flow(_flow(node.name, {"data": "torn"}))
    pages = NodeQueue(node.peer, unique, CHILDREN)
    async with work(_handle, queue=CHILDREN):

        async def child_failed() -> bool:
            return (await pages.get(flow["children"][0]["id"])).state == "failed"

        await eventually(child_failed)
    assert (await node.get(flow["id"])).state == "waiting-children"
    assert (await queue.get(flow["id"])).state is State.WAITING_CHILDREN


async def test_jobwire_works_the_parent_of_children_that_node_worked(
    node: NodeQueue, work: Work, unique: str, finished_in_node: Finished
) -> None:
    async def handle(job: ActiveJob) -> str:
        return f"{job.name} is done"

    flow = await node.add_flow(_flow(node.name, {"data": 1}, {"data": 2}))
    async with NodeQueue(node.peer, unique, CHILDREN).work("echo"), work(handle):
        parent = await finished_in_node(flow["id"])
    assert parent.returnvalue == "book is done"


async def test_a_child_that_jobwire_adds_holds_up_a_node_parent_too(
    node: NodeQueue, connection: Any, work: Work, unique: str, finished_in_node: Finished
) -> None:
    flow = await node.add_flow(_flow(node.name, {"data": 1, "opts": {"delay": 600_000}}))
    async with Queue(CHILDREN, connection) as pages:
        await pages.add("extra", parent=Parent(flow["id"], node.name))
        async with NodeQueue(node.peer, unique, CHILDREN).work("reflect"), node.work("gather"):

            async def extra_done() -> bool:
                return (await pages.counts())[State.COMPLETED] == 1

            await eventually(extra_done)
            assert (await node.get(flow["id"])).state == "waiting-children"
            await pages.admin.promote(flow["children"][0]["id"])
            parent = await finished_in_node(flow["id"])
    assert sorted(map(str, parent.returnvalue["values"])) == ["1", "extra"]
