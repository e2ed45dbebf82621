"""A trace goes on in the other language: from a Node.js producer with BullMQ's telemetry, and to a worker with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from awaiting import eventually
from jobwire import App, NewJob, Queue, Worker
from jobwire.observe.tracing import TraceContext, Tracing, current_trace

from ..peer import NodeQueue, NodeWorker

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


async def test_a_node_worker_continues_the_trace_of_our_producers(
    *, node: NodeQueue, url: str, provider: TracerProvider
) -> None:
    app = App(url, middleware=[TraceContext(provider)])

    @app.task(name="welcome", queue="letters")
    async def welcome(to: str) -> None: ...

    tracer = provider.get_tracer("shop")
    async with app, Queue("letters", url, trace=current_trace) as queue:
        with tracer.start_as_current_span("sign up") as span:
            await queue.add(1)
            await queue.add_many([NewJob(2)])
            task = await welcome.add("ada")
        await queue.add(3)
        async with node.work("echo", settings={"traced": True}) as worker:
            traces = await eventually(lambda: _four(worker))
    assert task.data == {"to": "ada"}  # the trace is not in the data of a protocol that has a field for it
    context = span.get_span_context()
    header = {"traceparent": f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"}
    assert traces == [header, header, header, None]


async def _four(worker: NodeWorker) -> list[Any] | None:
    traces = await worker.traces()
    return traces if len(traces) == 4 else None
