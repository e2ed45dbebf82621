"""What only some protocols can do: those that say so have every method of it, the others refuse."""

from __future__ import annotations

import contextlib

import pytest

from jobwire import facets
from jobwire.errors import RateLimited, WaitForChildren
from jobwire.flow import Flow, FlowJob
from jobwire.model import State
from jobwire.options import Parent
from jobwire.queue import Queue

FACETS = {
    facets.Flows: ["flows"],
    facets.Edits: ["edits"],
    facets.PriorityCounts: ["priority_counts"],
    facets.Bulk: ["bulk"],
    facets.RetriesAnew: ["retry_anew"],
    facets.QueueLimits: ["global_rate", "global_concurrency", "throttle"],
    facets.EventControl: ["custom_events"],
    facets.UniqueOwners: ["unique.owner"],
    facets.Routing: ["routing"],
    facets.Transactions: ["transactional_settle"],
}


def _methods(facet):
    return [name for name in vars(facet) if not name.startswith("_")]


@pytest.mark.parametrize("facet", FACETS, ids=lambda facet: facet.__name__)
async def test_a_capability_and_its_methods_come_together(facet, queue):
    can, backend = queue.capabilities, queue.connection.backend
    for capability in FACETS[facet]:
        feature, _, one = capability.partition(".")
        value = getattr(can, feature)
        if (one in value) if one else value:
            assert [name for name in _methods(facet) if not hasattr(backend, name)] == []


def test_every_facet_is_listed_here():
    there = [value for name, value in vars(facets).items() if isinstance(value, type) and _is_protocol(value)]
    assert sorted(facet.__name__ for facet in there if facet.__module__ == facets.__name__) == sorted(
        facet.__name__ for facet in FACETS
    )


def _is_protocol(value):
    return getattr(value, "_is_protocol", False)


async def test_flows_are_refused_where_there_are_none(queue, needs):
    with needs(queue, "flows"):
        await Flow(queue.connection).close()
    with needs(queue, "flows"):
        await queue.children("1")
    with needs(queue, "flows"):
        await queue.remove((await queue.add(1)).id, children=False)
    with needs(queue, "flows"):
        parent = await queue.add(1)
        await queue.add(2, parent=Parent(parent.id, queue.name))


async def test_a_handler_that_asks_for_what_the_protocol_lacks_fails_its_job(queue, work, finished):
    for request, feature in ((RateLimited(0.05), "throttle"), (WaitForChildren(), "flows")):
        runs = []

        async def handle(job, request=request, runs=runs):
            runs.append(job.id)
            if len(runs) == 1:
                raise request

        job = await queue.add(1)
        async with work(handle):
            done = await finished(queue, job.id)
        if getattr(queue.capabilities, feature):
            assert (done.state, len(runs)) == (State.COMPLETED, 2)
        else:
            assert (done.state, len(runs)) == (State.FAILED, 1)


async def test_children_from_a_handler_are_refused_where_there_are_none(queue, work, finished):
    async def handle(job):
        await job.add_children(FlowJob("pages", 1, delay=600))

    job = await queue.add(1)
    async with work(handle):
        done = await finished(queue, job.id)
    with contextlib.suppress(AttributeError):
        assert "children" in done.error
    assert done.state is State.FAILED


async def test_a_job_is_completed_in_its_handlers_transaction_or_there_is_none(queue, work, finished):
    async def handle(job):
        return await job.connection() is await job.connection()

    job = await queue.add(1)
    async with work(handle):
        done = await finished(queue, job.id)
    if queue.capabilities.transactional_settle:
        assert (done.state, done.result) == (State.COMPLETED, True)
    else:
        assert done.state is State.FAILED
        assert not done.error or "has no transaction" in done.error


async def test_a_limit_of_events_is_refused_where_there_is_no_stream(queue, needs):
    with needs(queue, "custom_events"):
        async with Queue("others", queue.connection, events_max_len=100):
            pass
