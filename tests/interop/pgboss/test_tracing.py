"""A trace goes on in Python: the run of a job that Node pg-boss sent with `propagateContext: true`."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from awaiting import eventually
from jobwire import Queue, Worker
from jobwire.observe.tracing import Tracing

from .conftest import QUEUE
from .node import NodeBoss, Peer

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
HEADERS = {"traceparent": f"00-{TRACE:032x}-{SPAN:016x}-01", "tracestate": "shop=1"}


async def test_the_span_of_a_run_is_part_of_the_producers_trace(peer: Peer, unique: str, queue: Queue) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traced = NodeBoss(peer, unique, "traced", headers=HEADERS)

    async def handle(job: Any) -> None: ...

    async with Worker(QUEUE, handle, queue.connection, observers=[Tracing(provider)]):
        await traced.call("send", QUEUE, {"to": "ada"})
        [span] = await eventually(exporter.get_finished_spans)
    await traced.stop()
    assert span.context is not None
    assert span.parent is not None
    assert (span.context.trace_id, span.parent.span_id, span.parent.is_remote) == (TRACE, SPAN, True)
    assert span.context.trace_state.get("shop") == "1"
