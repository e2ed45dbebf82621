"""Chains of typed tasks in a schema that Node made, of which Node runs or fails a step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from awaiting import eventually
from jobwire import App, Connection, JobFailed, State, chain
from jobwire.native import PgBossWorker

from .node import NodeBoss

PASSES = PgBossWorker(flow_interval=0.1, monitor_interval=0.1)


@pytest.fixture
async def app(connection: Connection) -> AsyncIterator[App]:
    async with App(connection) as app:
        yield app


def steps(app: App) -> tuple[Any, Any]:
    @app.task(attempts=1)
    async def first(number: int) -> int:
        raise AssertionError("Node runs this task")

    @app.task
    async def second(number: int) -> str:
        return f"number {number}"

    return first, second


async def test_a_step_that_node_completes_gives_its_result_to_ours(app: App, node: NodeBoss) -> None:
    first, second = steps(app)
    job = await chain(first.s(1), second.s()).add()
    [fetched] = await node.call("fetch", "first")
    assert fetched["data"] == {"number": 1}
    await node.call("complete", "first", fetched["id"], {"value": 20})
    async with app.worker(["second"], native=PASSES):
        assert await job.wait(30) == "number 20"


async def test_node_gets_the_step_after_one_of_ours(app: App, node: NodeBoss) -> None:
    @app.task
    async def start() -> int:
        return 7

    first, _ = steps(app)
    job = await chain(start.s(), first.s()).add()
    assert await node.call("fetch", "first") == []
    async with app.worker(["start"], native=PASSES):

        async def fetched() -> Any:
            return await node.call("fetch", "first")

        [found] = await eventually(fetched)
    source = found["data"]["$results"]["number"]
    assert (source["queue"], found["id"]) == ("start", job.id)
    read = await node.call("getJobById", source["queue"], source["id"])
    assert read["output"] == {"value": 7}


async def test_a_step_that_fails_in_node_fails_ours(app: App, node: NodeBoss) -> None:
    first, second = steps(app)
    job = await chain(first.s(1), second.s()).add()
    [fetched] = await node.call("fetch", "first")
    await node.call("fail", "first", fetched["id"], {"message": "no luck in Node"})
    assert (await first.get(fetched["id"])).state is State.FAILED
    async with app.worker(["second"], native=PASSES):
        with pytest.raises(JobFailed, match="of queue first, whose result it needs, failed: no luck in Node"):
            await job.wait(30)
