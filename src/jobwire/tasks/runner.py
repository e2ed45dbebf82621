"""Runs tasks: finds the task of a job, reads its arguments, provides its dependencies, and calls its function inside
the middleware."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, cast

from jobwire import codec
from jobwire.errors import Snooze, Unrecoverable
from jobwire.tasks.current import CONTEXT_KEY, running
from jobwire.tasks.depends import Call, Values, call_here, provide
from jobwire.tasks.middleware import Around, around
from jobwire.tasks.results import awaits_results, fill
from jobwire.tasks.task import Task
from jobwire.tasks.values import Misfit, to_json
from jobwire.worker.active import ActiveJob, BlockingJob
from jobwire.worker.handlers import Begin, ProcessRunner, Runner
from jobwire.worker.threads import Threads

_ELSEWHERE = 5.0
"""Seconds until a job that other workers have to run is ready again."""


class UnknownTask(Unrecoverable):
    """A worker has no task for a job's name. The job fails without another attempt."""


class InvalidResult(Unrecoverable):
    """A task has returned something else than it declares. The job fails without another attempt."""


class TaskRunner:
    """Runs the jobs of one queue. `by_name` finds a job's task by the job's name; otherwise the queue has one task.
    `others` runs the jobs that no task is for, and `release` gives them back."""

    def __init__(
        self,
        queue: str,
        tasks: Sequence[Task[..., Any]],
        middleware: Sequence[Around],
        values: Values,
        *,
        by_name: bool,
        others: Runner | None = None,
        release: bool = False,
    ) -> None:
        self._queue = queue
        self._by_name = by_name
        self._others = others
        self._release = release
        self._threads = Threads(f"jobwire-{queue}")
        self._runs: dict[str, TaskRun] = {
            task.name: TaskRun(task, [*middleware, *task.settings.middleware.running], values, self._threads)
            for task in tasks
        }
        self._only = next(iter(self._runs.values())) if self._runs and not by_name else None

    def can_interrupt(self, job: ActiveJob) -> bool:
        """Returns False if the function goes on after the call is cancelled."""
        run = self._run_of(job)
        if run is not None:
            return run.can_interrupt
        return self._others is None or self._others.can_interrupt(job)

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any:
        run = self._run_of(job)
        if run is not None:
            return await run(job, begin)
        if self._others is not None:
            return await self._others(job, begin)
        if self._release:
            raise Snooze(_ELSEWHERE, f"this worker has no task named {job.name}")
        known = ", ".join(self._runs) or "none"
        raise UnknownTask(f"no task named {job.name!r} in queue {self._queue!r} of this worker; known are {known}")

    def runs_here(self) -> bool:
        """Returns True if the calling thread belongs to this runner."""
        return self._threads.runs_here() or (self._others is not None and self._others.runs_here())

    def _run_of(self, job: ActiveJob) -> TaskRun | None:
        return self._runs.get(job.name) if self._by_name else self._only

    def close(self) -> None:
        self._threads.close()
        for run in self._runs.values():
            run.close()
        if self._others is not None:
            self._others.close()


class TaskRun:
    """Runs the jobs of one task."""

    def __init__(self, task: Task[..., Any], middleware: Sequence[Around], values: Values, threads: Threads) -> None:
        settings = task.settings
        self._task = task
        self._function = task.function
        self._parameters = task.parameters
        self._middleware = middleware
        self._values = values
        self._timeout = settings.timeout
        self._threads = threads if settings.executor == "thread" else None
        self._child = ProcessRunner(InChild(task), f"jobwire-{task.name}") if settings.executor == "process" else None
        self.can_interrupt = self._threads is None

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any:
        claim = job.claim
        if claim.timeout is None:
            claim.timeout = self._timeout
        running.set(job)
        if self._child is None:
            begin()
        if not self._middleware:
            result = await self._call(job, begin)
        else:
            result = await around(self._middleware, job, lambda: self._call(job, begin))
        return result if self._child is not None and not self._middleware else written_result(self._task, result)

    async def _call(self, job: ActiveJob, begin: Begin) -> Any:
        if awaits_results(job.data):
            await fill(job, self._parameters)
        if self._child is not None:
            encoded = await self._child(job, begin)
            return codec.loads(encoded) if self._middleware else encoded
        arguments = self._parameters.read(without_context(job.data))
        if self._threads is None and not self._parameters.dependencies:
            return await self._function(**arguments)
        if self._parameters.dependencies:
            call = call_here if self._threads is None else self._threads.call
            return await call_with(self._task, arguments, self._values, call, lambda: self._apply(job, arguments))
        return await self._apply(job, arguments)

    async def _apply(self, job: ActiveJob, arguments: Mapping[str, Any]) -> Any:
        function = self._function
        if self._threads is None:
            return await function(**arguments)
        blocking = BlockingJob(job, asyncio.get_running_loop())

        def call() -> Any:
            running.set(blocking)
            return function(**arguments)

        return await self._threads.call(call)

    def close(self) -> None:
        if self._child is not None:
            self._child.close()


async def call_with(
    task: Task[..., Any], arguments: dict[str, Any], process: Values, call: Call, apply: Callable[[], Any]
) -> Any:
    """Adds the task's dependencies to the arguments and applies the function. Cleans up when it has ended."""
    async with Values(process.overrides) as values:
        arguments.update(await provide(task.parameters.dependencies, values, process, call))
        return await apply()


def written_result(task: Task[..., Any], result: Any) -> Any:
    """Returns a result as JSON. Raises InvalidResult if it does not fit what the function declares."""
    try:
        form = task.parameters.result
        return to_json(result) if form.is_any else form.write(result)
    except Misfit as misfit:
        raise InvalidResult(f"task {task.name} returned something else than it declares: {misfit}") from None


def without_context(data: Any) -> Any:
    """Returns a job's data without the context that was sent along."""
    if isinstance(data, dict) and CONTEXT_KEY in data:
        return {name: value for name, value in cast("dict[str, Any]", data).items() if name != CONTEXT_KEY}
    return cast("Any", data)


def in_this_process(task: Task[..., Any]) -> Task[..., Any]:
    """Returns the task such that it does not run in a child process."""
    if task.settings.executor != "process":
        return task
    other = copy(task)
    executor = "async" if inspect.iscoroutinefunction(task.function) else "thread"
    other.settings = replace(task.settings, executor=executor)
    return other


class InChild:
    """Runs a task in a child process. It is sent there as the name of its task, and imported again."""

    def __init__(self, task: Task[..., Any]) -> None:
        self._task = task
        self._loop: asyncio.Runner | None = None
        self._values = Values()

    def __reduce__(self) -> tuple[Any, ...]:
        return InChild, (self._task,)

    def __call__(self, job: Any) -> Any:
        if self._loop is None:
            self._loop = asyncio.Runner()  # kept, since values of the process belong to it
        return self._loop.run(self._run(job))

    async def _run(self, job: Any) -> Any:
        running.set(job)
        task = self._task
        arguments = task.parameters.read(without_context(job.data))

        async def apply() -> Any:
            result = task.function(**arguments)
            return await result if asyncio.iscoroutine(result) else result

        return written_result(task, await call_with(task, arguments, self._values, call_here, apply))
