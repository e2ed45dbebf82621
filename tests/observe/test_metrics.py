"""What a scrape of the real endpoint shows of real jobs."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from awaiting import eventually
from jobwire import Connection, InvalidOption, NewJob, Queue, State, Unrecoverable, Worker, connect, sync
from jobwire.boundary import ConsumerSettings
from jobwire.observe.metrics import Metrics
from observe.scraping import Scrape, scrape, scrape_blocking


async def _handle(job: Any) -> None:
    if job.data == "hopeless":
        raise Unrecoverable("no address")
    if job.data == "flaky" and job.attempts_made == 0:
        raise RuntimeError("try again")


async def _settled(worker: Worker, runs: int) -> None:
    stats = worker.stats
    await eventually(lambda: stats.completed + stats.failed + stats.retried == runs)


async def test_runs_are_counted_by_what_became_of_the_job(
    connection: Connection, queue: Queue, metrics: Metrics, port: int
) -> None:
    async with metrics.add(Worker("emails", _handle, connection, observers=[metrics])) as worker:
        await queue.add_many([NewJob("fine"), NewJob("fine"), NewJob("hopeless"), NewJob("flaky", attempts=2)])
        await _settled(worker, 5)
        seen = await scrape(port)
    assert seen.by("status", "memory_jobs_processed_total", queue="emails") == {
        "completed": 3.0,
        "failed": 1.0,
        "retried": 1.0,
    }
    assert seen.value("memory_job_duration_seconds_count", queue="emails") == 5.0


async def test_run_times_fall_into_their_buckets(connection: Connection, queue: Queue, unique: str) -> None:
    async def handle(job: Any) -> None:
        await asyncio.sleep(job.data)

    with Metrics(CollectorRegistry(), buckets=(0.1, 60), fresh_for=0) as metrics:
        port = metrics.serve(0)
        async with metrics.add(Worker("emails", handle, connection, concurrency=3, observers=[metrics])) as worker:
            await queue.add_many([NewJob(0), NewJob(0), NewJob(0.2)])
            await _settled(worker, 3)
            seen = await scrape(port)
    buckets = seen.by("le", "memory_job_duration_seconds_bucket", queue="emails")
    assert list(buckets) == ["0.1", "60.0", "+Inf"]
    assert buckets["60.0"] == buckets["+Inf"] == 3.0
    assert buckets["0.1"] <= 2.0
    total = seen.value("memory_job_duration_seconds_sum", queue="emails")
    assert total is not None
    assert 0.2 <= total < 60


async def test_queue_lengths_are_those_of_the_moment_of_the_scrape(queue: Queue, metrics: Metrics, port: int) -> None:
    metrics.add_queue(queue)
    assert (await scrape(port)).value("memory_queue_length", queue="emails", state="wait") == 0.0
    await queue.add_many([NewJob(1), NewJob(2), NewJob(3, delay=3600)])
    seen = (await scrape(port)).by("state", "memory_queue_length", queue="emails")
    counts = await queue.counts()
    assert seen == {"wait" if state is State.WAITING else state.value: float(n) for state, n in counts.items()}
    assert (seen["wait"], seen["delayed"]) == (2.0, 1.0)


async def test_a_young_answer_of_the_store_serves_the_next_scrape_too(queue: Queue) -> None:
    with Metrics(CollectorRegistry(), fresh_for=3600) as metrics:
        port = metrics.serve(0)
        metrics.add_queue(queue)
        await scrape(port)
        await queue.add(1)
        assert (await scrape(port)).value("memory_queue_length", queue="emails", state="wait") == 0.0


async def test_a_job_taken_back_from_a_dead_worker_is_counted_as_stalled(
    connection: Connection, queue: Queue, metrics: Metrics, port: int
) -> None:
    await queue.add("fine")
    dead = connection.backend.consumer(ConsumerSettings("emails", "dead", lease=0.1))
    assert len((await dead.settle([], 1)).claims) == 1
    await dead.close()
    worker = Worker("emails", _handle, connection, recover_every=0.05, observers=[metrics])
    async with metrics.add(worker):
        await _settled(worker, 1)
        seen = await scrape(port)
    assert seen.value("memory_stalled_jobs_total", queue="emails") == 1.0


async def test_renewed_leases_are_counted(connection: Connection, queue: Queue, metrics: Metrics, port: int) -> None:
    renewed = asyncio.Event()

    async def handle(job: Any) -> None:
        await renewed.wait()

    async with metrics.add(Worker("emails", handle, connection, lease=0.2, observers=[metrics])) as worker:
        await queue.add(1)
        await eventually(lambda: worker.stats.heartbeats >= 2)
        seen = await scrape(port)
        renewed.set()
    beats = seen.value("memory_heartbeat_success_total", queue="emails")
    assert beats is not None
    assert beats >= 2
    assert seen.value("memory_heartbeat_failure_total", queue="emails") == 0.0


async def test_a_scrape_is_answered_while_a_handler_blocks_the_event_loop(
    connection: Connection, queue: Queue, metrics: Metrics, port: int
) -> None:
    blocked, scraped = threading.Event(), threading.Event()
    seen: list[Scrape] = []

    async def handle(job: Any) -> bool:
        blocked.set()
        return scraped.wait(20)  # nothing else in this event loop can run until the scrape has been answered

    def look() -> None:
        assert blocked.wait(20)
        seen.append(scrape_blocking(port))
        scraped.set()

    looking = asyncio.create_task(asyncio.to_thread(look))
    async with metrics.add(Worker("emails", handle, connection, observers=[metrics])):
        job = await queue.add(1)
        assert await job.wait(30) is True
    await looking
    assert seen[0].value("memory_queue_length", queue="emails", state="active") == 1.0


async def test_a_worker_is_active_until_it_stops(connection: Connection, metrics: Metrics, port: int) -> None:
    labels = {"queue": "emails", "worker_id": "host-1-abc"}
    worker = metrics.add(Worker("emails", _handle, connection, worker_id="host-1-abc", observers=[metrics]))
    assert (await scrape(port)).value("memory_active_workers", **labels) == 0.0
    async with worker:
        await eventually(lambda: worker.stats.calls)
        assert (await scrape(port)).value("memory_active_workers", **labels) == 1.0
        await worker.pause()
        assert (await scrape(port)).value("memory_active_workers", **labels) == 0.0
        worker.resume()
        assert (await scrape(port)).value("memory_active_workers", **labels) == 1.0
    assert (await scrape(port)).value("memory_active_workers", **labels) == 0.0


async def test_a_removed_worker_leaves_its_numbers_to_its_queue(
    connection: Connection, queue: Queue, metrics: Metrics, port: int
) -> None:
    for number in (1, 2):
        async with metrics.add(Worker("emails", _handle, connection, observers=[metrics])) as worker:
            await queue.add("fine")
            await _settled(worker, 1)
        metrics.remove(worker)
        seen = await scrape(port)
        assert seen.value("memory_jobs_processed_total", queue="emails", status="completed") == number
        assert seen.by("worker_id", "memory_active_workers") == {}


async def test_workers_of_one_queue_are_summed_and_their_queue_is_counted_once(
    unique: str, metrics: Metrics, port: int
) -> None:
    url = f"memory:{unique}"
    first = metrics.add(Worker("emails", _handle, url, observers=[metrics]))
    second = metrics.add(Worker("emails", _handle, url, observers=[metrics]))
    async with metrics.add_queue(Queue("emails", url)) as queue:
        await queue.add("fine", delay=3600)
        async with first, second:
            await queue.add_many([NewJob("fine") for _ in range(20)])
            await eventually(lambda: first.stats.completed + second.stats.completed == 20)
            seen = await scrape(port)
    assert seen.value("memory_jobs_processed_total", queue="emails", status="completed") == 20.0
    assert seen.value("memory_queue_length", queue="emails", state="delayed") == 1.0
    assert seen.by("status", "memory_store_connection_status") == {"connected": 1.0, "disconnected": 0.0}


def test_a_worker_for_blocking_code_is_seen_too(unique: str, metrics: Metrics, port: int) -> None:
    url = f"memory:{unique}"
    with sync.Queue("emails", url) as queue, sync.Worker("emails", print, url, observers=[metrics]) as worker:
        metrics.add(worker.inner)
        queue.add("fine").wait(20)
    seen = scrape_blocking(port)
    assert seen.value("memory_jobs_processed_total", queue="emails", status="completed") == 1.0
    assert seen.value("memory_job_duration_seconds_count", queue="emails") == 1.0


async def test_two_stores_in_one_process_are_not_taken_for_one(metrics: Metrics, port: int) -> None:
    async with connect("memory:one") as one, connect("memory:other") as other:
        for connection, name in ((one, "emails"), (other, "letters")):
            await metrics.add_queue(Queue(name, connection)).add(1)
        seen = await scrape(port)
    assert seen.by("queue", "memory_queue_length", state="wait") == {"emails": 1.0, "letters": 1.0}


def test_a_queue_name_on_two_protocols_needs_two_metrics(metrics: Metrics) -> None:
    metrics.add(Worker("emails", _handle, "memory:", observers=[metrics]))
    with pytest.raises(InvalidOption, match="needs a Metrics of its own"):
        metrics.add(Worker("emails", _handle, "bullmq+redis://127.0.0.1:1/0", observers=[metrics]))


async def test_a_forgotten_observer_is_complained_of_once(
    connection: Connection, queue: Queue, metrics: Metrics, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "jobwire.observe")
    async with metrics.add(Worker("emails", _handle, connection)) as worker:
        await queue.add("fine")
        await _settled(worker, 1)
        await scrape(port)
        await scrape(port)
    assert [record.message for record in caplog.records if record.name == "jobwire.observe"] == [
        f"the run times of {worker!r} are not seen: make it with observers=[metrics]"
    ]


async def test_a_worker_that_was_not_added_is_complained_of_once(
    connection: Connection, queue: Queue, metrics: Metrics, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "jobwire.observe")
    async with Worker("emails", _handle, connection, observers=[metrics]) as worker:
        await queue.add("fine")
        await _settled(worker, 1)
        await scrape(port)
        await scrape(port)
    assert [record.message for record in caplog.records if record.name == "jobwire.observe"] == [
        "a worker of queue 'emails' has these metrics as observer: metrics.add(worker) is missing"
    ]


@pytest.mark.parametrize("buckets", [(), (0,), (1, 1), (2, 1), (-1, 1)])
def test_buckets_must_rise(buckets: tuple[float, ...]) -> None:
    with pytest.raises(InvalidOption, match="rising order"):
        Metrics(CollectorRegistry(), buckets=buckets)


def test_the_endpoint_is_on_loopback_alone_unless_told(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 5):
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 5)


async def test_closing_gives_back_the_port_the_thread_and_the_registry(queue: Queue) -> None:
    registry = CollectorRegistry()
    with Metrics(registry) as metrics:
        port = metrics.serve(0)
        metrics.add_queue(queue)
        await scrape(port)
    assert list(registry.collect()) == []
    assert not [thread for thread in threading.enumerate() if thread.name == "jobwire-metrics"]
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


@pytest.mark.parametrize(("module", "package"), [("metrics", "prometheus_client"), ("tracing", "opentelemetry")])
def test_a_missing_package_is_named_with_the_command_that_installs_it(module: str, package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; import jobwire.observe.{module}"
    ran = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    last = ran.stderr.splitlines()[-1]
    assert "MissingExtra" in last
    assert f"jobwire.observe.{module} needs more packages: pip install 'jobwire[observe]'" in last


async def test_a_worker_of_several_queues_is_counted_by_queue(
    connection: Connection, queue: Queue, metrics: Metrics, port: int
) -> None:
    handlers = {"emails": _handle, "letters": _handle}
    worker = metrics.add(Worker(handlers, url=connection, concurrency=2, observers=[metrics]))
    async with worker, Queue("letters", connection) as letters:
        await queue.add_many([NewJob("fine"), NewJob("fine")])
        await letters.add("hopeless")
        await eventually(lambda: worker.stats.settled == 3)
        seen = await scrape(port)
    metrics.remove(worker)
    for seen_now in (seen, await scrape(port)):
        assert seen_now.value("memory_jobs_processed_total", queue="emails", status="completed") == 2.0
        assert seen_now.value("memory_jobs_processed_total", queue="letters", status="failed") == 1.0
        assert seen_now.value("memory_job_duration_seconds_count", queue="letters") == 1.0
    assert {seen.value("memory_active_workers", queue=name, worker_id=worker.id) for name in handlers} == {1.0}
