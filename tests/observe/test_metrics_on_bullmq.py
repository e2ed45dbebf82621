"""The names that the specification gives, on a real server, and a server that falls silent."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awaiting import eventually
from jobwire import NewJob, Queue, Unrecoverable, Worker, embedded
from jobwire.observe.metrics import Metrics
from observe.scraping import scrape

SPECIFIED = {
    "bullmq_jobs_processed_total": {"queue", "status"},
    "bullmq_job_duration_seconds_bucket": {"queue", "le"},
    "bullmq_job_duration_seconds_count": {"queue"},
    "bullmq_job_duration_seconds_sum": {"queue"},
    "bullmq_queue_length": {"queue", "state"},
    "bullmq_stalled_jobs_total": {"queue"},
    "bullmq_heartbeat_success_total": {"queue"},
    "bullmq_heartbeat_failure_total": {"queue"},
    "bullmq_active_workers": {"queue", "worker_id"},
    "bullmq_redis_reconnect_attempts_total": set[str](),
    "bullmq_redis_connection_status": {"status"},
    "bullmq_stalled_checker_skipped_total": {"queue"},
}


async def _handle(job: Any) -> None:
    if job.data == "hopeless":
        raise Unrecoverable("no address")
    if job.data == "flaky" and job.attempts_made == 0:
        raise RuntimeError("try again")


def test_the_documentation_lists_exactly_the_specified_metrics() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "observe.md").read_text()
    rows = re.findall(r"^\| `(bullmq_\w+)(?:\{(.*?)\})?` \| (\w+) \|", page, re.MULTILINE)
    listed = {name: set(labels.split(", ")) - {""} for name, labels, _ in rows}
    whole = {name.removesuffix("_count"): labels for name, labels in SPECIFIED.items()}
    assert listed == {name: labels for name, labels in whole.items() if not name.endswith(("_bucket", "_sum"))}


async def test_the_documentation_names_the_type_of_each_metric(jobwire_url: str, metrics: Metrics) -> None:
    metrics.add(Worker("emails", _handle, jobwire_url))
    shown = {
        f"{one.name}_total" if one.type == "counter" else one.name: one.type
        for one in await asyncio.to_thread(lambda: list(metrics.collect()))
    }
    page = (Path(__file__).parent.parent.parent / "docs" / "observe.md").read_text()
    assert dict(re.findall(r"^\| `(bullmq_\w+)(?:\{.*?\})?` \| (\w+) \|", page, re.MULTILINE)) == shown


async def test_names_and_labels_are_exactly_the_specified_ones(jobwire_url: str, metrics: Metrics, port: int) -> None:
    worker = metrics.add(Worker("emails", _handle, jobwire_url, observers=[metrics]))
    async with Queue("emails", jobwire_url) as queue, worker:
        await queue.add_many([NewJob("fine"), NewJob("hopeless"), NewJob("flaky", attempts=2)])
        await eventually(lambda: (worker.stats.completed, worker.stats.failed) == (2, 1))
        seen = await scrape(port)
    assert seen.shapes() == SPECIFIED
    assert seen.by("status", "bullmq_jobs_processed_total", queue="emails") == {
        "completed": 2.0,
        "failed": 1.0,
        "retried": 1.0,
    }
    lengths = seen.by("state", "bullmq_queue_length", queue="emails")
    assert {"wait": 0.0, "active": 0.0, "completed": 2.0, "failed": 1.0}.items() <= lengths.items()
    assert seen.value("bullmq_active_workers", queue="emails", worker_id=worker.id) == 1.0
    assert seen.by("status", "bullmq_redis_connection_status") == {"connected": 1.0, "disconnected": 0.0}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[embedded.Server]:
    with embedded.valkey(tmp_path, durable=False) as started:
        yield started


@pytest.mark.slow
async def test_a_scrape_is_answered_while_the_server_hangs_and_tells_of_it(
    server: embedded.Server, metrics: Metrics, port: int
) -> None:
    url, free = f"bullmq+{server.url}", asyncio.Event()

    async def handle(job: Any) -> None:
        if job.data == "long":
            await free.wait()

    worker = metrics.add(
        Worker("emails", handle, url, concurrency=2, lease=1, recover_every=0.05, call_timeout=0.5, observers=[metrics])
    )
    stats = worker.stats
    async with Queue("emails", url) as queue, worker:
        await queue.add_many([NewJob("short"), NewJob("long")])
        await eventually(lambda: stats.completed == 1 and worker.busy == 1 and stats.heartbeats)
        assert (await scrape(port)).value("bullmq_queue_length", queue="emails", state="active") == 1.0
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await eventually(lambda: stats.reconnects and stats.heartbeat_failures, within=40)
            seen = await scrape(port)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        assert seen.by("status", "bullmq_redis_connection_status") == {"connected": 0.0, "disconnected": 1.0}
        assert seen.by("state", "bullmq_queue_length") == {}
        assert (seen.value("bullmq_redis_reconnect_attempts_total") or 0) >= 1
        assert (seen.value("bullmq_heartbeat_failure_total", queue="emails") or 0) >= 1
        assert seen.value("bullmq_jobs_processed_total", queue="emails", status="completed") == 1.0

        free.set()
        await eventually(lambda: stats.duties_skipped and worker.busy == 0, within=40)
        again = await eventually(lambda: _connected(port), within=40)
        assert (again.value("bullmq_stalled_checker_skipped_total", queue="emails") or 0) >= 1


async def _connected(port: int) -> Any:
    seen = await scrape(port)
    told = seen.value("bullmq_queue_length", queue="emails", state="active") is not None
    return seen if told and seen.value("bullmq_redis_connection_status", status="connected") == 1.0 else None


async def test_a_server_that_was_never_there_is_shown_as_disconnected(metrics: Metrics, port: int) -> None:
    metrics.add_queue(Queue("emails", "bullmq+redis://127.0.0.1:1/0"))
    seen = await scrape(port)
    assert seen.by("status", "bullmq_redis_connection_status") == {"connected": 0.0, "disconnected": 1.0}
    assert seen.by("state", "bullmq_queue_length") == {}
