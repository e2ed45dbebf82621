"""Flows on a real cluster: all queues of one need the same hash tag, and others are refused before any write."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from jobwire import ActiveJob, Connection, Flow, FlowJob, InvalidOption, Parent, Queue, Rate, State, Worker, connect
from jobwire.embedded import Cluster


@pytest.fixture
def url(jobwire_valkey_cluster: Cluster) -> Callable[[str], str]:
    """The address of the cluster with a prefix of the test's choice."""
    hosts = jobwire_valkey_cluster.hosts
    return lambda prefix: f"bullmq+cluster://{hosts}?prefix={prefix}"


@pytest.fixture
async def connection(url: Callable[[str], str]) -> AsyncIterator[Connection]:
    async with connect(url(f"{{test-{uuid.uuid4().hex[:12]}}}")) as connection:
        yield connection


async def test_a_flow_across_queues_of_one_tag_is_worked_and_read(connection: Connection) -> None:
    async def read(job: ActiveJob) -> Any:
        return job.data

    async def gather(job: ActiveJob) -> Any:
        if len(await job.children()) == 2:
            await job.add_children(FlowJob("pages", 3))
        await job.wait_for_children()
        return sorted((await job.children_values()).values())

    async with Flow(connection) as flow:
        tree = await flow.add(FlowJob("books", 0, children=[FlowJob("pages", 1), FlowJob("pages", 2)]))
        assert len((await flow.get("books", tree.job.id)).children) == 2
        async with Worker("pages", read, connection), Worker("books", gather, connection):
            assert await tree.job.wait(20) == [1, 2, 3]


async def test_queues_of_other_tags_are_refused_in_one_flow(url: Callable[[str], str]) -> None:
    async with connect(url(f"test-{uuid.uuid4().hex[:12]}")) as connection, Flow(connection) as flow:
        for wrong in (
            FlowJob("{books}", 0, children=[FlowJob("{pages}", 1)]),
            FlowJob("{books}", 0, children=[FlowJob("pages", 1)]),
            FlowJob("{books}", 0, parent=Parent("1", "{pages}")),
        ):
            with pytest.raises(InvalidOption, match="braces"):
                await flow.add(wrong)
        async with Queue("{books}", connection) as books:
            assert sum((await books.counts()).values()) == 0


async def test_edits_limits_and_events_work_there_too(connection: Connection) -> None:
    async with Queue("q", connection, events_max_len=50) as queue:
        job = await queue.add(1, delay=60)
        await queue.admin.change_delay(job.id, 30)
        assert await queue.admin.promote_all() == 1
        await queue.admin.change_priority(job.id, 3)
        await queue.admin.update_data(job.id, 2)
        await queue.admin.limit_rate(Rate(5, per=1))
        await queue.admin.limit_concurrency(2)
        await queue.admin.throttle(60)
        await queue.admin.clear_logs(job.id)
        limits = await queue.admin.limits()
        assert (limits.rate, limits.concurrency) == (Rate(5), 2)
        assert limits.blocked_for > 50
        await queue.admin.publish("lunch")
        assert await queue.admin.trim_events(0) > 0
        assert await queue.admin.unique_owner("k") is None
        found = await queue.get(job.id)
        assert found is not None
        assert (found.state, found.data, found.priority) == (State.WAITING, 2, 3)
