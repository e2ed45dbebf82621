"""Events of one's own, the length of the stream, and who holds a unique key."""

from __future__ import annotations

import asyncio

import pytest

from jobwire import AddStatus
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption
from jobwire.options import Unique
from jobwire.queue import Queue


async def _next_event(queue, since):
    async with asyncio.timeout(10):
        async for event in queue.events(since=since):
            return event
    return None


async def test_an_event_of_ones_own_is_heard_by_whoever_listens(queue, needs):
    with needs(queue, Feature.EVENT_CONTROL):
        before = await queue.admin.publish("first")
        event_id = await queue.admin.publish("lunch", {"place": "É", "record": "1", "jobId": "7"})
        event = await _next_event(queue, before)
        assert (event.id, event.native_type) == (event_id, "lunch")
        assert (event.data["place"], event.data["record"], event.data["jobId"]) == ("É", "1", "7")
        for wrong in ({"n": 1}, {"event": "other"}):
            with pytest.raises(InvalidOption, match="fields"):
                await queue.admin.publish("lunch", wrong)


async def test_the_stream_is_trimmed(queue, needs):
    with needs(queue, Feature.EVENT_CONTROL):
        before = await queue.admin.publish("first")
        for n in range(5):
            await queue.admin.publish("more", {"n": str(n)})
        assert await queue.admin.trim_events(0) == 6
        last = await queue.admin.publish("last")
        event = await _next_event(queue, before)
        assert event.id == last


async def test_a_queue_keeps_about_as_many_events_as_it_was_opened_with(queue, needs):
    with needs(queue, Feature.EVENT_CONTROL):
        async with Queue("short", queue.connection, events_max_len=100) as short:
            first = await short.admin.publish("e", {"n": "0"})
            for n in range(1, 400):
                await short.admin.publish("e", {"n": str(n)})
            seen = []
            async with asyncio.timeout(10):
                async for event in short.events(since=first):
                    seen.append(event.data["n"])
                    if seen[-1] == "399":
                        break
            # Streams are trimmed by whole blocks, so somewhat more than asked for is left.
            assert 100 <= len(seen) < 300


async def test_who_holds_a_unique_key_is_known_and_the_key_can_be_released(queue, needs):
    with needs(queue, Feature.UNIQUE_OWNERS):
        assert await queue.admin.unique_owner("invoice-7") is None
        job = await queue.add(1, unique=Unique("invoice-7", ttl=600))
        assert await queue.admin.unique_owner("invoice-7") == job.id
        assert await queue.admin.release_unique("invoice-7") is True
        assert await queue.admin.release_unique("invoice-7") is False
        assert (await queue.add(2, unique=Unique("invoice-7"))).add_status is AddStatus.ADDED


async def test_the_last_events_are_read_and_gone_on_from(queue, needs):
    with needs(queue, Feature.EVENT_CONTROL):
        assert list(await queue.admin.last_events()) == []
        for number in range(3):
            await queue.admin.publish(f"step-{number}", {"n": str(number)})
        last = await queue.admin.last_events(limit=2)
        assert [event.native_type for event in last] == ["step-1", "step-2"]
        await queue.admin.publish("step-3")
        async for event in queue.events(since=last[-1].id):
            assert event.native_type == "step-3"
            break
        with pytest.raises(InvalidOption):
            await queue.admin.last_events(limit=0)
