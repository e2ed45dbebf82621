"""A trace that begins in a Node.js producer with BullMQ's telemetry goes on in our worker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from awaiting import eventually
from jobwire import App, Worker
from jobwire.observe.tracing import TraceContext, Tracing

from ..peer import NodeQueue

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
HEADERS = {"traceparent": f"00-{TRACE:032x}-{SPAN:016x}-01", "tracestate": "shop=1"}


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


async def test_the_span_of_a_run_is_part_of_the_producers_trace(
    *, node: NodeQueue, url: str, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    async def handle(job: Any) -> None: ...

    async with Worker("letters", handle, url, observers=[Tracing(provider)]):
        await node.add(1, telemetry={"metadata": json.dumps(HEADERS)})
        [span] = await eventually(exporter.get_finished_spans)
    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id, span.parent.is_remote) == (TRACE, SPAN, True)
    assert span.context.trace_state.get("shop") == "1"


async def test_the_span_of_a_task_is_part_of_the_producers_trace(
    *, node: NodeQueue, url: str, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    app = App(url, middleware=[TraceContext(provider)])

    @app.task(name="welcome", queue="letters")
    async def welcome(to: str) -> None: ...

    async with app, app.worker():
        await node.add({"to": "ada"}, name="welcome", telemetry={"metadata": json.dumps(HEADERS)})
        [span] = await eventually(exporter.get_finished_spans)
    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id) == (TRACE, SPAN)


async def test_a_job_without_a_readable_trace_begins_one(
    *, node: NodeQueue, url: str, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    async def handle(job: Any) -> None: ...

    unreadable = ["", "{", "[1]", '{"traceparent": 7}', '{"traceparent": "nonsense"}', 17]
    async with Worker("letters", handle, url, observers=[Tracing(provider)]):
        await node.add(1)
        for metadata in unreadable:
            await node.add(1, telemetry={"metadata": metadata})
        await eventually(lambda: len(exporter.get_finished_spans()) == 1 + len(unreadable))
    assert {span.parent for span in exporter.get_finished_spans()} == {None}
