"""How soon a worker learns of work, by the change stream and without one."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from datetime import timedelta

import pytest
from pymongo import MongoClient

from awaiting import eventually
from jobwire import NewJob, Queue, Worker
from jobwire.boundary import Completed, Feature, Verdict
from jobwire.embedded import binaries

from .peer import Peer, now


@pytest.fixture
def standalone(tmp_path, unique):
    """A server outside of any replica set, which pushes no changes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(binaries.MONGO.find()), "--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen([*command, "--dbpath", str(tmp_path)], stdout=log)
    try:
        with MongoClient(port=port) as client:
            client.admin.command("ping")
        yield f"mongodb://127.0.0.1:{port}/{unique}"
    finally:
        server.terminate()
        server.wait()


class Seen:
    """A handler that notes when it got which job."""

    def __init__(self) -> None:
        self.at: dict[object, float] = {}

    async def __call__(self, job):
        self.at[job.data] = time.monotonic()


async def test_an_idle_worker_starts_what_another_program_writes_long_before_its_next_look(queue, work, peer, jobs):
    seen = Seen()
    async with work(seen) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        job = await asyncio.to_thread(peer.enqueue, "emails", "later", run_at=now() + timedelta(hours=1))
        for data, write in [
            ("inserted", lambda: peer.enqueue("emails", "inserted")),
            ("later", lambda: jobs.update_one({"_id": job["_id"]}, {"$set": {"nextRunAt": now()}})),
            ("replaced", lambda: jobs.replace_one({"_id": job["_id"]}, peer.fresh("emails", "replaced"))),
        ]:
            asked = time.monotonic()
            await asyncio.to_thread(write)
            await eventually(lambda data=data: data in seen.at)
            assert seen.at[data] - asked < 1.5, "the next look unasked would have been after 5 s"


async def test_a_steady_stream_of_inserts_holds_nothing_up(queue, work, peer):
    seen, sent = Seen(), {}
    async with work(seen) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        for n in range(40):
            sent[n] = time.monotonic()
            await asyncio.to_thread(peer.enqueue, "emails", n)
            await asyncio.sleep(0.03)
        await eventually(lambda: len(seen.at) == 40)
    waits = sorted(seen.at[n] - sent[n] for n in range(40))
    assert waits[20] < 0.6, waits
    assert seen.at[0] < sent[39], "the first job was started only when the stream of inserts had ended"


async def test_a_job_that_comes_due_starts_on_time(queue, work, peer):
    seen = Seen()
    async with work(seen) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        asked = time.monotonic()
        await asyncio.to_thread(peer.enqueue, "emails", "soon", run_at=now() + timedelta(seconds=0.5))
        await eventually(lambda: seen.at)
    assert 0.49 <= seen.at["soon"] - asked < 2.0


async def test_a_worker_that_would_hear_of_a_job_does_not_look_for_one_with_every_outcome(queue, consume, jobs, peer):
    await queue.add_many([NewJob(1), NewJob(2)])
    consumer = consume()
    first, second = (await consumer.settle([], claim=3)).claims
    waiting = asyncio.create_task(consumer.wait(30))
    await eventually(lambda: consumer._waiter.quiet)
    jobs.database.command("profile", 2)
    settled = await consumer.settle([Completed(first, b"null")], claim=2)
    jobs.database.command("profile", 0)
    assert (list(settled.verdicts), list(settled.claims)) == ([Verdict.COMPLETED], [])
    done = list(jobs.database["system.profile"].find({"appName": "jobwire", "ns": jobs.full_name}))
    assert [one["op"] for one in done if one["op"] != "getmore"] == ["update"]

    await asyncio.to_thread(peer.enqueue, "emails", 3)
    await waiting
    settled = await consumer.settle([Completed(second, b"null")], claim=2)
    assert [claim.job.data for claim in settled.claims] == [3]


async def test_jobs_that_come_while_others_end_are_started_without_a_pause(queue, work, peer):
    seen, sent = Seen(), {}

    async def handler(job):
        await seen(job)
        await asyncio.sleep(0.02)

    async with work(handler, concurrency=5) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        for n in range(60):
            sent[n] = time.monotonic()
            await asyncio.to_thread(peer.enqueue, "emails", n)
            await asyncio.sleep(0.013)
        await eventually(lambda: len(seen.at) == 60)
    waits = {n: seen.at[n] - sent[n] for n in sent}
    assert max(waits.values()) < 3.0, "the next look unasked would have been after 5 s"


async def test_jobs_of_other_names_wake_nobody(queue, work, peer):
    async with work(Seen()) as worker:
        await eventually(lambda: worker.stats.calls > 0)
        before = worker.stats.calls
        for n in range(10):
            await asyncio.to_thread(peer.enqueue, "letters", n)
        await asyncio.to_thread(peer.enqueue, "emails", 1)
        await eventually(lambda: worker.stats.completed == 1)
    assert worker.stats.calls - before <= 4


async def three_waiting(consume):
    """Three consumers that wait, each informed of the queue, with their waits. The first has waited for longest."""
    consumers = [consume() for _ in range(3)]
    waits = []
    for consumer in consumers:
        await consumer.settle([], claim=1)
        waits.append(asyncio.create_task(consumer.wait(60)))
        await eventually(lambda consumer=consumer: consumer._waiter.quiet)
    return consumers, waits


async def ended(waits):
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)


async def test_a_job_wakes_one_of_the_workers_that_wait_and_the_next_job_another(queue, consume, peer):
    consumers, waits = await three_waiting(consume)
    await asyncio.to_thread(peer.enqueue, "emails", 1)
    await waits[0]
    assert [consumer._waiter.quiet for consumer in consumers] == [False, True, True]
    await asyncio.to_thread(peer.enqueue, "emails", 2)
    await waits[1]
    assert [consumer._waiter.quiet for consumer in consumers] == [False, False, True]
    await ended(waits)


async def test_a_worker_that_can_not_use_its_wakeup_passes_it_on(queue, consume, connection):
    consumers, waits = await three_waiting(consume)
    connection.backend._wakeup.wake("emails", 0)
    waits[0].cancel()
    await waits[1]
    assert consumers[2]._waiter.quiet
    await consumers[1].pass_on()
    await waits[2]
    await ended(waits)


async def test_all_workers_know_of_a_job_that_is_due_later(queue, consume, peer):
    consumers, waits = await three_waiting(consume)
    await asyncio.to_thread(peer.enqueue, "emails", 1, run_at=now() + timedelta(hours=1))
    await eventually(lambda: all(consumer._waiter.due_ms is not None for consumer in consumers))
    await ended(waits)


async def test_no_stream_is_held_open_for_workers_that_are_busy(queue, work, connection):
    wakeup = connection.backend._wakeup
    async with work(lambda job: None) as idle:
        await eventually(lambda: wakeup.listening)
        await idle.stop()
    await eventually(lambda: not wakeup.listening)


async def test_without_a_replica_set_a_worker_looks_every_second(standalone):
    seen = Seen()
    url = f"monque+{standalone}"
    async with Queue("emails", url) as queue, Worker("emails", seen, url) as worker:
        assert not queue.capabilities.has(Feature.EVENTS)
        assert queue.connection.backend.events is None
        await eventually(lambda: worker.stats.calls > 0)
        with MongoClient(standalone, tz_aware=True) as client:
            asked = time.monotonic()
            Peer(client.get_default_database()["monque_jobs"], "node-1").enqueue("emails", "polled")
        await eventually(lambda: "polled" in seen.at)
        assert seen.at["polled"] - asked < 2.5
        added = await queue.add("local")
        assert await added.wait(timeout=20) is None
