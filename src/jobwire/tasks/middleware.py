"""Middleware: code around every run of a task, and around every add.

    async def timed(job: ActiveJob, call_next: CallNext) -> Any:
        began = time.monotonic()
        try:
            return await call_next(job)
        finally:
            log.info("%s took %.3f s", job.name, time.monotonic() - began)

    app = App(middleware=[timed])

The first one is the outermost. A middleware is a coroutine function as above, or an object with a method `running` like
it, a method `adding` for the producer's side, or both. Such a pair carries context with a job:

    class Tenant:
        def adding(self, new: Adding) -> None:
            new.context["tenant"] = tenant.get()

        async def running(self, job: ActiveJob, call_next: CallNext) -> Any:
            with tenant_is(context_of(job)["tenant"]):
                return await call_next(job)

The context is stored in the job's data under "$context", so it must be JSON, and peers can read it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from jobwire.boundary import Traces
from jobwire.checks import function, is_async, items, takes
from jobwire.errors import InvalidOption
from jobwire.tasks.current import CONTEXT_KEY
from jobwire.worker.active import ActiveJob

CallNext = Callable[..., Awaitable[Any]]
"""Runs the rest: `await call_next(job)` returns the task's result."""
Around = Callable[[ActiveJob[Any], CallNext], Awaitable[Any]]


@dataclass(slots=True)
class Adding:
    """A job that is about to be added. `context` may be filled, and `trace` with headers of OpenTelemetry. The trace is
    stored in the protocol's own field for it, or in the context if there is none."""

    task: str
    queue: str
    data: Any
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    trace: dict[str, str] = field(default_factory=dict[str, str])


class Middleware:
    """A list of middleware, checked, and split into the two sides. Calling it adds one, also as a decorator:
    `@app.middleware`. That must come before the worker is made."""

    def __init__(self, given: Iterable[Any] = ()) -> None:
        self.running: list[Around] = []
        self.adding: list[Callable[[Adding], None]] = []
        for index, one in enumerate(items("middleware", given, "middleware")):
            self._take(f"middleware[{index}]", one)

    def __call__(self, one: Any) -> Any:
        self._take("middleware", one)
        return one

    def _take(self, field_name: str, one: Any) -> None:
        around, adding = getattr(one, "running", None), getattr(one, "adding", None)
        if isinstance(one, type):
            raise InvalidOption(field_name, one, "is a class; give an object of it")
        if around is None and adding is None:
            around = one
        for method in (around, adding):
            if method is not None and not callable(method):
                raise InvalidOption(
                    field_name, one, "must be a coroutine function, or an object with running or adding"
                )
        if around is not None:
            if not is_async(around) or not takes(around, 2):
                raise InvalidOption(field_name, one, "must be a coroutine function: async def (job, call_next)")
            self.running.append(around)
        if adding is not None:
            rule = "must be a function that takes the new job"
            self.adding.append(function(f"{field_name}.adding", adding, 1, rule, plain=True))

    def with_context(self, task: str, queue: str, data: Any, traces: Traces | None) -> tuple[Any, Mapping[str, Any]]:
        """Returns a new job's data with the context that the middleware sends along, and native options for its
        trace."""
        new = Adding(task, queue, data)
        for adding in self.adding:
            adding(new)
        options: Mapping[str, Any] = {}
        if new.trace and traces is not None:
            options = traces.job_options(new.trace)
        else:
            new.context |= new.trace
        if not new.context:
            return data, options
        if data is not None and not isinstance(data, dict):
            raise InvalidOption("context", new.context, f"can't be sent: the data of task {task} is not an object")
        return {**cast("dict[str, Any]", data or {}), CONTEXT_KEY: new.context}, options


def around(
    middleware: Sequence[Around], job: ActiveJob[Any], innermost: Callable[[], Awaitable[Any]]
) -> Awaitable[Any]:
    """Runs the function inside all of the middleware."""

    def call(index: int) -> Awaitable[Any]:
        if index == len(middleware):
            return innermost()

        def call_next(job: ActiveJob[Any] = job) -> Awaitable[Any]:
            return call(index + 1)

        return middleware[index](job, call_next)

    return call(0)
