"""Reading and administration on a real cluster, where a queue's keys share a hash tag."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from jobwire.boundary import Acted, Backend, ConsumerSettings, PreparedJob
from jobwire.connection import load_backend
from jobwire.embedded import Cluster
from jobwire.model import State
from jobwire.options import NewJob, NewSchedule
from jobwire.urls import parse


@asynccontextmanager
async def opened(cluster: Cluster, prefix: str) -> AsyncIterator[Backend]:
    backend = load_backend(parse(f"bullmq+cluster://{cluster.hosts}?prefix={prefix}"))
    await backend.open()
    yield backend
    await backend.close()


@pytest.fixture
async def backend(jobwire_valkey_cluster: Cluster) -> AsyncIterator[Backend]:
    async with opened(jobwire_valkey_cluster, f"{{test-{uuid.uuid4().hex[:12]}}}") as backend:
        yield backend


def job(name: str, **options: object) -> PreparedJob:
    return PreparedJob(NewJob({}, name, **options), name, b"{}")  # pyright: ignore[reportArgumentType]


async def test_jobs_are_read_paged_and_counted(backend: Backend) -> None:
    added = await backend.add("q", [job("a"), job("b", priority=2), job("c", delay=60)])

    assert [one.name for one in await backend.get("q", [one.id for one in added]) if one] == ["a", "b", "c"]
    assert [one.name for one in await backend.jobs("q", State.WAITING, 10, None)] == ["a", "b"]
    counts = await backend.counts("q")
    assert (counts[State.WAITING], counts[State.DELAYED]) == (2, 1)


async def test_figures_of_queues_on_all_nodes_are_read(jobwire_valkey_cluster: Cluster) -> None:
    names = [f"{{{letter}}}" for letter in "abcdefgh"]
    async with opened(jobwire_valkey_cluster, f"test-{uuid.uuid4().hex[:12]}") as backend:
        for name in names:
            await backend.register(name)
            await backend.add(name, [job("a"), job("b", delay=60)])
        assert backend.queue_list is not None
        assert list(await backend.queue_list.names()) == names
        found = (await backend.queue_list.figures(names, 10, None)).queues
        assert [(one.name, one.counts[State.WAITING], one.counts[State.DELAYED]) for one in found] == [
            (name, 1, 1) for name in names
        ]


async def test_a_queue_is_paused_changed_and_obliterated(backend: Backend) -> None:
    plain, later = await backend.add("q", [job("a"), job("c", delay=60)])

    await backend.pause.pause("q")
    assert await backend.pause.paused("q")
    assert await backend.promote("q", [later.id]) == [Acted.DONE]
    await backend.pause.resume("q")
    assert [one.id for one in await backend.jobs("q", State.WAITING, 10, None)] == [plain.id, later.id]
    assert await backend.remove("q", [plain.id]) == [Acted.DONE]
    await backend.drain("q", delayed=True)
    await backend.obliterate("q", force=False)

    assert set((await backend.counts("q")).values()) == {0}


async def test_a_schedule_is_made_listed_and_dropped(backend: Backend) -> None:
    template = job("tick")
    await backend.schedules.schedule("q", NewSchedule("s", template.new, every=60), template)

    assert [schedule.key for schedule in await backend.schedules.schedules("q")] == ["s"]
    assert await backend.schedules.unschedule("q", "s")


async def test_events_are_followed(backend: Backend) -> None:
    since = await backend.events.cursor("q")
    stream = backend.events.events("q", since)
    first = asyncio.ensure_future(anext(stream))

    [added] = await backend.add("q", [job("a")])

    async with asyncio.timeout(10):
        event = await first
    await stream.aclose()
    assert (event.native_type, event.job_id) == ("added", added.id)


async def test_workers_are_found_on_whichever_node_they_wait(jobwire_valkey_cluster: Cluster) -> None:
    queues = [f"{{{tag}}}" for tag in "abcdef"]
    async with opened(jobwire_valkey_cluster, f"test-{uuid.uuid4().hex[:12]}") as backend:
        consumers = [backend.consumer(ConsumerSettings(queue, "id", name=f"of {queue}")) for queue in queues]
        waits = [asyncio.ensure_future(consumer.wait(30)) for consumer in consumers]
        try:
            async with asyncio.timeout(10):
                for queue in queues:
                    while not (found := await backend.workers.workers(queue)):
                        await asyncio.sleep(0.01)
                    assert [worker.name for worker in found] == [f"of-{queue}"]
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            for consumer in consumers:
                await consumer.close()


async def test_queues_of_all_nodes_are_listed(jobwire_valkey_cluster: Cluster) -> None:
    names = [f"{{q{number}}}" for number in range(12)]  # hash tags of their own, so they are on several nodes
    async with opened(jobwire_valkey_cluster, f"test-{uuid.uuid4().hex[:12]}") as backend:
        assert backend.queue_list is not None
        for name in names:
            await backend.register(name)
        assert list(await backend.queue_list.names()) == sorted(names)
        assert await backend.queue_list.has("{q3}")
        assert not await backend.queue_list.has("{q99}")
