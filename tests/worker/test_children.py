"""Children from handlers of every kind, and what crosses the pipe to a child process."""

from __future__ import annotations

from typing import Any

import pytest

from awaiting import eventually
from jobwire import Backoff, Connection, FlowJob, InvalidOption, JobFailed, Parent, Queue, Worker


def gather(job: Any) -> Any:
    if not len(job.children()):
        trees = job.add_children(FlowJob("pages", 1, children=[FlowJob("pages", 2)]), FlowJob("pages", 3))
        assert [tree.job.data for tree in trees] == [1, 3]
    job.wait_for_children()
    return sorted(job.children_values().values())


def misuse(job: Any) -> None:
    job.add_children(FlowJob("pages", 1, parent=Parent("x", "pages")))


async def gather_async(job: Any) -> Any:
    if not len(await job.children()):
        await job.add_children(FlowJob("pages", 1), FlowJob("pages", 3))
    await job.wait_for_children()
    return sorted((await job.children_values()).values())


async def reflect(job: Any) -> Any:
    return job.data


@pytest.mark.parametrize(
    ("handler", "executor"),
    [(gather_async, "async"), (gather, "thread"), (gather, "process")],
    ids=["async", "thread", "process"],
)
async def test_a_handler_waits_for_children_wherever_it_runs(
    queue: Queue, connection: Connection, handler: Any, executor: Any
) -> None:
    job = await queue.add("book")
    async with Worker("work", handler, connection, executor=executor) as worker:
        await eventually(lambda: worker.stats.parked == 1)
        async with Worker("pages", reflect, connection):
            assert await job.wait(30) == [1, 3]
    assert (worker.stats.parked, worker.stats.completed) == (1, 1)


async def test_what_the_parent_process_refuses_is_raised_in_the_child(queue: Queue, connection: Connection) -> None:
    job = await queue.add("book")
    async with Worker("work", misuse, connection, executor="process"):
        with pytest.raises(JobFailed, match="parent: can't be given"):
            await job.wait(30)


async def test_each_custom_backoff_has_a_strategy_of_its_name(queue: Queue, connection: Connection) -> None:
    asked: list[tuple[str, int]] = []

    def named(name: str) -> Any:
        return lambda failures, job, error: asked.append((name, failures)) or 0.0

    async def fail_once(job: Any) -> str:
        if job.attempts_made == 0:
            raise OSError("once")
        return "done"

    one = await queue.add(1, attempts=2, backoff=Backoff.custom("gentle"))
    other = await queue.add(2, attempts=2, backoff=Backoff.custom("hasty"))
    strategies = {"gentle": named("gentle"), "hasty": named("hasty")}
    async with Worker("work", fail_once, connection, backoff=strategies):
        assert [await one.wait(10), await other.wait(10)] == ["done", "done"]
    assert asked == [("gentle", 1), ("hasty", 1)]
    with pytest.raises(InvalidOption, match=r"backoff\.gentle"):
        Worker("work", fail_once, connection, backoff={"gentle": 5})  # type: ignore[dict-item]
