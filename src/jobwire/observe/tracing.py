"""A span for each run of a job, through OpenTelemetry.

    Worker("emails", handle, url, observers=[Tracing()])

The span covers the handler's run, and is sent when the verdict is known. If the producer's telemetry has stored its
trace with the job, as BullMQ's does in Node.js, the span is part of that trace. It is not the parent of spans that the
handler makes, because an observer does not run in the handler's task.

    App(url, middleware=[TraceContext()])

Here the producer's trace continues in the run: the span of a task is a child of the one that was current when its job
was added, in Python or in Node.js, and the parent of those that the task makes.

    Queue("emails", url, trace=current_trace)

Jobs of this queue carry the trace of the code that adds them, for workers in Python and in Node.js. That needs a
protocol with a field for it (`Feature.TRACES`). With another, nothing is stored.
"""

from __future__ import annotations

import time
from typing import Any

from jobwire.boundary import Claim, Failed, Outcome, Verdict
from jobwire.errors import MissingExtra, RateLimited, Snooze, WaitForChildren
from jobwire.model import Job
from jobwire.tasks.current import context_of
from jobwire.tasks.middleware import Adding, CallNext
from jobwire.worker import ActiveJob

try:
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context
except ModuleNotFoundError as missing:
    raise MissingExtra("jobwire.observe.tracing", "observe") from missing

_NANOSECONDS = 1_000_000_000


def current_trace() -> dict[str, str]:
    """Returns the headers of the current span, for `Queue(…, trace=current_trace)`. Empty if there is none."""
    headers: dict[str, str] = {}
    propagate.inject(headers)
    return headers


class Tracing:
    """An observer that makes spans. Uses the global provider by default, which does nothing until the application sets
    one."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("jobwire", tracer_provider=provider)
        self._running: dict[Claim, tuple[trace.Span, int]] = {}

    def started(self, claim: Claim) -> None:
        job, now = claim.job, time.time_ns()
        span = self._tracer.start_span(
            f"process {job.queue}",
            context=propagate.extract(claim.trace_context, Context()),
            kind=trace.SpanKind.CONSUMER,
            attributes=_attributes(job),
            start_time=now,
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


class TraceContext:
    """Middleware of an App that sends the producer's trace with each job, and continues it in the run."""

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("jobwire", tracer_provider=provider)

    def adding(self, new: Adding) -> None:
        propagate.inject(new.trace)

    async def running(self, job: ActiveJob[Any], call_next: CallNext) -> Any:
        sent = {name: value for name, value in context_of(job).items() if isinstance(value, str)}
        carried = {**job.claim.trace_context, **sent}
        with self._tracer.start_as_current_span(
            f"run {job.name}",
            context=propagate.extract(carried),
            kind=trace.SpanKind.CONSUMER,
            attributes=_attributes(job.snapshot),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                return await call_next(job)
            except (Snooze, RateLimited, WaitForChildren):
                raise  # the job is put off, so the run has not failed
            except BaseException as error:
                span.record_exception(error)
                span.set_status(trace.StatusCode.ERROR, str(error))
                raise


def _attributes(job: Job) -> dict[str, str | int]:
    return {
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "jobwire.job.name": job.name,
        "jobwire.job.attempt": job.attempts_made + 1,
    }
