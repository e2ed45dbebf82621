"""The event stream: every event once, in order, through anything that happens to the connection."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from redis.asyncio import Redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend
from jobwire.errors import InvalidOption, StoreUnavailable
from jobwire.model import Event

from .peer import node


async def take(backend: Backend, number: int, since: str = "0-0") -> list[Event]:
    found: list[Event] = []
    stream = backend.events.events("q", since)
    try:
        async with asyncio.timeout(20):
            async for event in stream:
                found.append(event)
                if len(found) == number:
                    return found
    finally:
        await stream.aclose()
    raise AssertionError(found)


async def readers(redis: Redis, keys: Keys) -> list[dict[str, str]]:
    return [client for client in await redis.client_list() if client["name"] == keys.events_connection_name()]


async def test_a_queue_without_events_has_the_beginning_as_its_cursor(backend: Backend) -> None:
    assert await backend.events.cursor("q") == "0-0"


async def test_the_cursor_is_after_everything_that_has_happened(redis, keys, backend: Backend) -> None:
    await redis.xadd(keys.events, {"event": "added", "jobId": "1", "name": "n"})
    cursor = await backend.events.cursor("q")
    await redis.xadd(keys.events, {"event": "waiting", "jobId": "1"})

    [event] = await take(backend, 1, cursor)

    assert (event.native_type, event.job_id) == ("waiting", "1")
    assert event.id == await backend.events.cursor("q")


async def test_events_of_a_node_worker_are_read_with_result_and_error(jobwire_valkey, prefix, backend: Backend) -> None:
    script = """
    const p = prefixes[0], q = queueOf(p);
    await q.add("good", {}, { jobId: "good" }); await q.add("bad", {}, { jobId: "bad" });
    await work(p, 2, async (job) => {
      await job.updateProgress({ half: true });
      if (job.id === "bad") throw new Error("boom");
      return { sum: 3 };
    });
    """
    await node(jobwire_valkey.url, [prefix], script)

    events = await take(backend, 12)

    seen = {(event.native_type, event.job_id): event for event in events}
    assert seen["progress", "good"].data["data"] == {"half": True}
    assert (seen["completed", "good"].result, seen["completed", "good"].error) == ({"sum": 3}, None)
    assert (seen["failed", "bad"].result, seen["failed", "bad"].error) == (None, "boom")
    assert seen["retries-exhausted", "bad"].data == {"jobId": "bad", "attemptsMade": "1"}
    assert seen["drained", None].data == {}
    assert all(abs(event.at - datetime.now(UTC)) < timedelta(minutes=1) for event in events)


async def test_a_value_that_should_be_json_and_is_not_stays_text(redis, keys, backend: Backend) -> None:
    await redis.xadd(keys.events, {"event": "completed", "jobId": "1", "returnvalue": b"{broken \xff"})
    await redis.xadd(keys.events, {"event": "progress", "jobId": "1", "data": "half"})

    completed, progress = await take(backend, 2)

    assert completed.result == "{broken \N{REPLACEMENT CHARACTER}"
    assert progress.data["data"] == "half"


async def test_events_of_ones_own_pass_through_as_they_are(redis, keys, backend: Backend) -> None:
    await redis.xadd(keys.events, {"event": "my-event", "colour": "red", "data": "[1]"})

    [event] = await take(backend, 1)

    assert (event.native_type, event.job_id, event.data) == ("my-event", None, {"colour": "red", "data": "[1]"})


async def test_a_waiting_reader_gets_an_event_at_once_and_is_named_as_peers_expect(
    redis, keys, backend: Backend
) -> None:
    reading = asyncio.create_task(take(backend, 1, await backend.events.cursor("q")))
    while not await readers(redis, keys):
        await asyncio.sleep(0.005)
    loop = asyncio.get_running_loop()
    started = loop.time()

    await redis.xadd(keys.events, {"event": "added", "jobId": "1", "name": "n"})

    [event] = await reading
    assert event.job_id == "1"
    assert loop.time() - started < 1


async def test_a_reader_whose_connection_is_cut_goes_on_where_it_was(redis, keys, backend: Backend) -> None:
    numbers = count(1)
    reading = asyncio.create_task(take(backend, 60))
    for _ in range(3):
        for _ in range(20):
            await redis.xadd(keys.events, {"event": "added", "jobId": str(next(numbers)), "name": "n"})
        while not (found := await readers(redis, keys)):
            if reading.done():
                break
            await asyncio.sleep(0.005)
        for client in found:
            await redis.client_kill_filter(_id=client["id"])

    assert [event.job_id for event in await reading] == [str(number) for number in range(1, 61)]


async def test_a_cancelled_reader_leaves_no_connection_behind(redis, keys, backend: Backend) -> None:
    reading = asyncio.create_task(take(backend, 1))
    while not await readers(redis, keys):
        await asyncio.sleep(0.005)

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    async with asyncio.timeout(5):
        while await readers(redis, keys):
            await asyncio.sleep(0.005)


async def test_a_reader_ends_when_its_backend_has_been_closed(redis, keys, backend: Backend) -> None:
    reading = asyncio.create_task(take(backend, 1))
    while not (found := await readers(redis, keys)):
        await asyncio.sleep(0.005)

    await backend.close()
    await redis.client_kill_filter(_id=found[0]["id"])

    with pytest.raises(StoreUnavailable):
        await reading


@pytest.mark.parametrize("since", ["", "$", "yesterday", "1-2-3", "-1"])
async def test_a_cursor_that_is_none_is_refused(since: str, backend: Backend) -> None:
    with pytest.raises(InvalidOption, match="since"):
        await take(backend, 1, since)
