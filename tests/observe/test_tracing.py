"""Spans of real jobs, exported by the real SDK."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from awaiting import eventually
from jobwire import App, Connection, JobFailed, Queue, Worker
from jobwire.observe.tracing import TraceContext, Tracing


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider)


async def _handle(job: Any) -> None:
    await asyncio.sleep(0.05)
    if job.attempts_made == 0:
        raise RuntimeError("the printer is on fire")


def _told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_each_run_of_a_job_is_a_span(
    connection: Connection, queue: Queue, tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    async with Worker("emails", _handle, connection, observers=[tracing]):
        job = await queue.add(1, name="welcome", attempts=2)
        await job.wait(20)
        first, second = await eventually(
            lambda: len(exporter.get_finished_spans()) == 2 and exporter.get_finished_spans()
        )
    same = {
        "messaging.operation.type": "process",
        "messaging.destination.name": "emails",
        "messaging.message.id": job.id,
        "jobwire.job.name": "welcome",
    }
    assert _told(first) == {**same, "jobwire.job.attempt": 1, "jobwire.job.verdict": "retried"}
    assert _told(second) == {**same, "jobwire.job.attempt": 2, "jobwire.job.verdict": "completed"}
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "the printer is on fire")
    assert second.status.status_code is StatusCode.UNSET
    for span in (first, second):
        assert (span.name, span.kind) == ("process emails", SpanKind.CONSUMER)
        assert span.start_time is not None
        assert span.end_time is not None
        assert span.end_time - span.start_time >= 50_000_000


async def test_a_job_that_was_taken_away_is_a_failed_span(
    connection: Connection, queue: Queue, tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    async def handle(job: Any) -> None:
        await queue.admin.obliterate(force=True)

    async with Worker("emails", handle, connection, observers=[tracing]):
        await queue.add(1)
        [span] = await eventually(exporter.get_finished_spans)
    assert _told(span)["jobwire.job.verdict"] == "lost"
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        "the job was no longer this worker's",
    )


async def test_without_a_provider_jobs_run_as_ever(connection: Connection, queue: Queue) -> None:
    async with Worker("emails", _handle, connection, observers=[Tracing()]) as worker:
        job = await queue.add(1, attempts=2)
        await job.wait(20)
        await eventually(lambda: (worker.stats.completed, worker.stats.retried) == (1, 1))


async def test_the_producers_trace_continues_in_the_run_of_a_task(exporter: InMemorySpanExporter) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("shop")
    app = App(f"memory:{uuid.uuid4().hex}", middleware=[TraceContext(provider)])

    @app.task
    async def bill(order: int, bad: bool = False) -> None:
        with tracer.start_as_current_span("charge the card"):
            if bad:
                raise ValueError("no such card")

    async with app, app.worker():
        with tracer.start_as_current_span("POST /orders"):
            job = await bill.add(7)
        await job.wait(30)
        with pytest.raises(JobFailed):
            await (await bill.add(7, bad=True)).wait(30)
        await eventually(lambda: len(exporter.get_finished_spans()) == 5)
    spans = {span.name: span for span in exporter.get_finished_spans()[:3]}
    post, run, charge = spans["POST /orders"], spans["run bill"], spans["charge the card"]
    assert run.parent is not None
    assert charge.parent is not None
    assert (run.parent.span_id, charge.parent.span_id) == (post.context.span_id, run.context.span_id)
    assert run.context.trace_id == post.context.trace_id
    assert _told(run)["messaging.message.id"] == job.id
    failed = exporter.get_finished_spans()[-1]
    assert (failed.name, failed.status.status_code) == ("run bill", StatusCode.ERROR)
    assert failed.parent is None
