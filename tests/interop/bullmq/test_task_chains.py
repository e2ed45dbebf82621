"""Chains of typed tasks of which Node runs a step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobwire import App, Connection, JobFailed, chain, chord

from ..peer import NodeQueue


@pytest.fixture
async def app(connection: Connection) -> AsyncIterator[App]:
    async with App(connection) as app:
        yield app


def steps(app: App, queue: str) -> tuple[Any, Any, Any]:
    @app.task
    async def first(number: int) -> int:
        return number + 1

    @app.task(queue=queue)
    async def in_node(number: Any, unit: str) -> dict[str, Any]:
        raise AssertionError("Node runs this task")

    @app.task
    async def last(seen: dict[str, Any]) -> str:
        return f"{seen['by']} saw {seen['values']}"

    return first, in_node, last


async def test_node_runs_the_middle_of_a_chain(app: App, node: NodeQueue) -> None:
    first, in_node, last = steps(app, node.name)
    async with app.worker(["first", "last"]), node.work("gather", label="node"):
        job = await chain(first.s(1), in_node.s(unit="m"), last.s()).add()
        assert await job.wait(30) == "node saw [2]"


async def test_node_reads_the_names_of_the_results_as_plain_json(app: App, node: NodeQueue) -> None:
    first, in_node, _ = steps(app, node.name)
    async with app.worker(["first"]), node.work("echo", label="node"):
        job = await chain(first.s(1), in_node.s(unit="m")).add()
        seen = await job.wait(30)
    assert (seen["name"], seen["data"]["unit"]) == ("in_node", "m")
    assert list(seen["data"]) == ["unit", "$results"]
    assert seen["data"]["$results"]["number"]["queue"] == "first"


async def test_node_runs_the_members_of_a_chord(app: App, node: NodeQueue) -> None:
    _, in_node, _ = steps(app, node.name)

    @app.task
    async def units(results: list[dict[str, Any]]) -> list[str]:
        return [one["data"]["unit"] for one in results]

    async with app.worker(["units"]), node.work("echo"):
        job = await chord([in_node.s(n, unit) for n, unit in enumerate("abc")], units.s()).add()
        assert await job.wait(30) == ["a", "b", "c"]


async def test_a_failure_in_node_fails_our_next_steps(app: App, node: NodeQueue) -> None:
    first, in_node, last = steps(app, node.name)

    @app.task
    async def after(text: str) -> str:
        return text

    async with app.worker(["first", "last", "after"]), node.work("refuse", label="node"):
        job = await chain(first.s(1), in_node.s(unit="m"), last.s(), after.s()).add()
        with pytest.raises(JobFailed, match=r"child .* failed"):
            await job.wait(30)


async def test_node_runs_the_last_step_and_our_failure_fails_it(app: App, node: NodeQueue) -> None:
    @app.task(attempts=1)
    async def bad() -> int:
        raise ValueError("no luck")

    _, in_node, _ = steps(app, node.name)
    async with app.worker(["bad"]), node.work("gather", label="node"):
        job = await chain(bad.s(), in_node.s(unit="m")).add()
        with pytest.raises(JobFailed, match=r"child .* failed"):
            await job.wait(30)
