"""A span for each run of a job, through OpenTelemetry.

    Worker("emails", handle, url, observers=[Tracing()])

The span covers the handler's run, and is sent when the verdict is known. It is not the parent of spans that the handler
makes, because an observer does not run in the handler's task.
"""

from __future__ import annotations

import time

from jobwire.boundary import Claim, Failed, Outcome, Verdict
from jobwire.errors import MissingExtra

try:
    from opentelemetry import trace
except ModuleNotFoundError as missing:
    raise MissingExtra("jobwire.observe.tracing", "observe") from missing

_NANOSECONDS = 1_000_000_000


class Tracing:
    """An observer that makes spans. Uses the global provider by default, which does nothing until the application sets
    one."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("jobwire", tracer_provider=provider)
        self._running: dict[Claim, tuple[trace.Span, int]] = {}

    def started(self, claim: Claim) -> None:
        job, now = claim.job, time.time_ns()
        attributes = {
            "messaging.operation.type": "process",
            "messaging.destination.name": job.queue,
            "messaging.message.id": job.id,
            "jobwire.job.name": job.name,
            "jobwire.job.attempt": job.attempts_made + 1,
        }
        span = self._tracer.start_span(
            f"process {job.queue}", kind=trace.SpanKind.CONSUMER, attributes=attributes, start_time=now
        )
        self._running[claim] = (span, now)

    def settled(self, outcome: Outcome, verdict: Verdict) -> None:
        claim = outcome.claim
        span, since = self._running.pop(claim)
        span.set_attribute("jobwire.job.verdict", verdict.value)
        if isinstance(outcome, Failed):
            span.set_status(trace.StatusCode.ERROR, outcome.error)
        elif verdict is Verdict.LOST:
            span.set_status(trace.StatusCode.ERROR, "the job was no longer this worker's")
        span.end(since + round(claim.run_seconds * _NANOSECONDS))
