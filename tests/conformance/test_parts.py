"""What only some protocols can do: those that state a feature have the part for it, the others refuse."""

from __future__ import annotations

from jobwire.boundary import Backend, Feature
from jobwire.errors import RateLimited, WaitForChildren
from jobwire.flow import Flow, FlowJob
from jobwire.model import State
from jobwire.options import Parent
from jobwire.queue import Queue

PARTS = {
    "flows": Feature.FLOWS,
    "dependencies": Feature.DEPENDENCIES,
    "edits": Feature.EDITS,
    "bulk": Feature.BULK,
    "cancels": Feature.CANCEL,
    "pause": Feature.PAUSE,
    "progress": Feature.PROGRESS,
    "logs": Feature.LOGS,
    "schedules": Feature.SCHEDULES,
    "events": Feature.EVENTS,
    "event_control": Feature.EVENT_CONTROL,
    "limits": Feature.LIMITS,
    "key_limits": Feature.KEY_LIMITS,
    "traces": Feature.TRACES,
    "unique_owners": Feature.UNIQUE_OWNERS,
    "routing": Feature.ROUTING,
    "transactions": Feature.TRANSACTIONS,
    "workers": Feature.WORKERS,
    "queue_list": Feature.QUEUES,
    "diagnosis": Feature.DIAGNOSIS,
}


async def test_a_backend_has_a_part_for_each_feature_that_it_states(queue):
    backend = queue.connection.backend
    there = {feature for part, feature in PARTS.items() if getattr(backend, part) is not None}
    assert there == queue.capabilities.features & set(PARTS.values())


def test_every_part_is_listed_here():
    there = [name for name, value in vars(Backend).items() if isinstance(value, property) and name != "capabilities"]
    assert sorted(there) == sorted(PARTS)


async def test_flows_are_refused_where_there_are_none(queue, needs):
    with needs(queue, Feature.FLOWS):
        await Flow(queue.connection).close()
    with needs(queue, Feature.FLOWS):
        await queue.children("1")
    with needs(queue, Feature.FLOWS):
        await queue.admin.remove((await queue.add(1)).id, children=False)
    with needs(queue, Feature.FLOWS):
        parent = await queue.add(1)
        await queue.add(2, parent=Parent(parent.id, queue.name))


async def test_a_handler_that_asks_for_what_the_protocol_lacks_fails_its_job(queue, work, finished):
    for request, feature in ((RateLimited(0.05), Feature.THROTTLE), (WaitForChildren(), Feature.FLOWS)):
        runs = []

        async def handle(job, request=request, runs=runs):
            runs.append(job.id)
            if len(runs) == 1:
                raise request

        job = await queue.add(1)
        async with work(handle):
            done = await finished(queue, job.id)
        if queue.capabilities.has(feature):
            assert (done.state, len(runs)) == (State.COMPLETED, 2)
        else:
            assert (done.state, len(runs)) == (State.FAILED, 1)


async def test_children_from_a_handler_are_refused_where_there_are_none(queue, work, finished):
    async def handle(job):
        await job.add_children(FlowJob("pages", 1, delay=600))

    job = await queue.add(1)
    async with work(handle):
        done = await finished(queue, job.id)
    assert done.state is State.FAILED
    if done.error:  # not every protocol stores a reason
        assert ("children" if queue.capabilities.has(Feature.FLOWS) else "flows") in done.error


async def test_a_job_is_completed_in_its_handlers_transaction_or_there_is_none(queue, work, finished):
    async def handle(job):
        return await job.transaction() is await job.transaction()

    job = await queue.add(1)
    async with work(handle):
        done = await finished(queue, job.id)
    if queue.capabilities.has(Feature.TRANSACTIONS):
        assert (done.state, done.result) == (State.COMPLETED, True)
    else:
        assert done.state is State.FAILED
        assert not done.error or "has no transaction" in done.error


async def test_a_limit_of_events_is_refused_where_there_is_no_stream(queue, needs):
    with needs(queue, Feature.EVENT_CONTROL):
        async with Queue("others", queue.connection, events_max_len=100):
            pass
