"""Flows and the operator's calls in blocking code."""

from __future__ import annotations

from typing import Any

from jobwire import FlowJob, State, sync


def gather(job: Any) -> Any:
    return sorted(job.children_values().values())


def reflect(job: Any) -> Any:
    return job.data


def test_a_blocking_program_adds_a_flow_and_waits_for_it() -> None:
    with sync.connect("memory:sync-flow") as connection, sync.Flow(connection) as flow:
        tree = flow.add(FlowJob("books", 0, children=[FlowJob("pages", n) for n in (2, 1)]))
        assert [child.job.data for child in flow.get("books", tree.job.id).children] == [2, 1]
        with sync.Worker("pages", reflect, connection), sync.Worker("books", gather, connection):
            assert tree.job.wait(10) == [1, 2]
            assert tree.children[0].job.wait(10) == 2


def test_operators_calls_block_too() -> None:
    with sync.Queue("q", "memory:sync-operators") as queue:
        job = queue.add(1, delay=600)
        queue.admin.change_delay(job.id, 300)
        assert queue.admin.promote_all() == 1
        queue.admin.limit_concurrency(3)
        assert queue.admin.limits().concurrency == 3
        assert queue.counts()[State.WAITING] == 1
