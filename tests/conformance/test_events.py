"""The stream of what happens on a queue."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta

from jobwire.boundary import Feature

from .conftest import with_attempts


async def cursor(queue):
    """Returns the position after everything that has happened."""
    return await queue.capabilities.part(queue.connection.backend.events, Feature.EVENTS).cursor(queue.name)


@contextlib.asynccontextmanager
async def recording(queue, since):
    events = []

    async def read():
        async for event in queue.events(since=since):
            events.append(event)  # noqa: PERF401 - the stream never ends, the list is read meanwhile

    task = asyncio.create_task(read())
    try:
        yield events
    finally:
        task.cancel()
        await asyncio.wait([task])


def of(events, job_id):
    return [event for event in events if event.job_id == job_id]


async def ended(eventually, events, job_id):
    return await eventually(lambda: [e for e in of(events, job_id) if e.kind in ("completed", "failed")])


async def test_a_job_tells_its_life(queue, connection, work, eventually, needs):
    async def handler(job):
        await job.update_progress({"half": True})
        return {"sent": 1}

    with needs(queue, Feature.EVENTS, Feature.PROGRESS):
        since = await cursor(queue)
        async with recording(queue, since) as events, work(handler):
            added = await queue.add(1)
            [completed] = await ended(eventually, events, added.id)
            types = [event.kind for event in of(events, added.id)]
        assert [t for t in types if t in ("added", "active", "progress", "completed")] == [
            "added", "active", "progress", "completed",
        ]  # fmt: skip
        assert completed.result == {"sent": 1}
        assert abs(completed.at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_a_failure_tells_its_error(queue, connection, work, eventually, needs):
    async def handler(job):
        raise RuntimeError("mailbox full")

    with needs(queue, Feature.EVENTS):
        since = await cursor(queue)
        async with recording(queue, since) as events, work(handler):
            added = await queue.add(1)
            [failed] = await ended(eventually, events, added.id)
        assert (failed.kind, "mailbox full" in failed.error) == ("failed", True)


@with_attempts(2)
async def test_a_run_that_will_be_retried_is_no_failure_yet(queue, work, eventually, needs, tries):
    runs = []

    async def handler(job):
        runs.append(job.id)
        if len(runs) == 1:
            raise RuntimeError("once")

    with needs(queue, Feature.EVENTS):
        since = await cursor(queue)
        async with recording(queue, since) as events, work(handler, **tries.worker):
            added = await queue.add(1, **tries.job)
            await ended(eventually, events, added.id)
        types = [event.kind for event in of(events, added.id)]
        assert "failed" not in types
        assert types.count("active") == 2


async def test_a_reader_goes_on_after_the_event_it_saw_last(queue, connection, eventually, needs):
    with needs(queue, Feature.EVENTS):
        since = await cursor(queue)
        first = await queue.add(1)
        async with recording(queue, since) as events:
            await eventually(lambda: len(of(events, first.id)) >= 2)
        last = events[-1].id
        second = await queue.add(2)
        async with recording(queue, last) as later:
            await eventually(lambda: len(of(later, second.id)) >= 2)
        assert of(later, first.id) == []


async def test_event_ids_never_repeat(queue, connection, eventually, needs):
    with needs(queue, Feature.EVENTS):
        since = await cursor(queue)
        async with recording(queue, since) as events:
            added = [await queue.add(n) for n in range(20)]
            await eventually(lambda: of(events, added[-1].id))
        ids = [event.id for event in events]
        assert len(ids) == len(set(ids))


async def test_two_readers_see_the_same(queue, connection, eventually, needs):
    with needs(queue, Feature.EVENTS):
        since = await cursor(queue)
        async with recording(queue, since) as one, recording(queue, since) as two:
            added = await queue.add(1)
            await eventually(lambda: len(of(one, added.id)) >= 2 and len(of(two, added.id)) >= 2)
        assert [event.kind for event in of(one, added.id)] == [event.kind for event in of(two, added.id)]


async def test_a_removed_job_says_so(queue, connection, eventually, needs):
    with needs(queue, Feature.EVENTS):
        since = await cursor(queue)
        async with recording(queue, since) as events:
            added = await queue.add(1)
            await queue.admin.remove(added.id)
            await eventually(lambda: [e for e in of(events, added.id) if e.kind == "removed"])


async def test_a_pause_says_so(queue, connection, eventually, needs):
    with needs(queue, Feature.EVENTS, Feature.PAUSE):
        since = await cursor(queue)
        async with recording(queue, since) as events:
            await queue.admin.pause()
            await queue.admin.resume()
            await eventually(
                lambda: [e.kind for e in events if e.kind in ("paused", "resumed")] == ["paused", "resumed"]
            )


async def test_a_reader_without_a_cursor_sees_only_what_happens_from_now_on(queue, eventually, needs):
    with needs(queue, Feature.EVENTS):
        queue.capabilities.require(Feature.EVENTS)  # a reader in the background could not raise it
        old = await queue.add("old")
        async with recording(queue, None) as events:

            async def something_is_seen():
                await queue.add("new")
                return events

            await eventually(something_is_seen)
        assert of(events, old.id) == []
