"""A task: a function whose calls become jobs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, cast, overload

from jobwire import codec
from jobwire.boundary import Feature
from jobwire.checks import Seconds, items, text
from jobwire.errors import InvalidOption, MalformedPayload
from jobwire.generics import Out_co
from jobwire.model import Job, Schedule
from jobwire.options import JobOptions, NewJob, check_names
from jobwire.preparing import AddedJobs
from jobwire.rate import Rate
from jobwire.tasks.failures import AnyHook
from jobwire.tasks.middleware import Middleware
from jobwire.tasks.parameters import Parameters
from jobwire.tasks.unique import By
from jobwire.tasks.values import Misfit
from jobwire.worker.handlers import Executor, Runner

if TYPE_CHECKING:
    from jobwire.queue import Queue
    from jobwire.tasks.app import App

P = ParamSpec("P")
Rest = ParamSpec("Rest")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """The settings of a task that do not travel with its jobs."""

    queue: str
    name: str
    executor: Executor
    timeout: float | None = None
    rate: Rate | None = None
    max_running: int | None = None
    unique: By | None = None
    limit_by: str | None = None
    """The parameter for each value of which the limits hold by themselves. None: they hold for all jobs together."""
    middleware: Middleware = field(default_factory=Middleware)


@dataclass(frozen=True, slots=True)
class Call(Generic[Out_co]):
    """A call of a task that has not been added yet. Made by `Task.s`, for chains and groups."""

    task: Task[..., Out_co]
    data: Any
    options: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    """The required parameters that were not given. In a chain, the one of them gets the previous result."""
    marked: tuple[str, ...] = ()
    """The parameters that were given as `previous`."""

    def __repr__(self) -> str:
        return f"<Call of {self.task.name}>"


class Task(Generic[P, R]):
    """A function whose calls become jobs. Made by `App.task`.

    `add` checks the arguments and adds a job; a worker of the app runs the function with them. Calling the task itself
    runs the function here and now, without a job.
    """

    def __init__(
        self,
        app: App,
        function: Callable[P, Any],
        parameters: Parameters,
        settings: TaskSettings,
        options: Mapping[str, Any],
    ) -> None:
        functools.update_wrapper(cast("Callable[..., Any]", self), function)
        self.app = app
        self.function = function
        self.parameters = parameters
        self.settings = settings
        self._options = dict(options)
        self._transaction: Any = None
        self._job_name = settings.name if app.capabilities.has(Feature.JOB_NAMES) else None

    @property
    def name(self) -> str:
        """The name of the task's jobs."""
        return self.settings.name

    @property
    def queue(self) -> str:
        """The name of the queue that its jobs go to."""
        return self.settings.queue

    @property
    def job_options(self) -> Mapping[str, Any]:
        """The options that its jobs are added with."""
        return MappingProxyType(self._options)

    def __repr__(self) -> str:
        return f"<Task {self.name} of {self.queue!r}>"

    # --- adding -----------------------------------------------------------------------------------------------------

    async def add(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Adds a job that runs the function with these arguments. Raises InvalidOption if they do not fit."""
        new = self.new_job(self.parameters.write(args, kwargs), self._options)
        return self.typed(await self._queue().add_job(new, transaction=self._transaction))

    async def add_many(self, calls: Iterable[Any]) -> Sequence[Job[R]]:
        """Adds many jobs in one go: a dict of arguments for each, or the object itself for a task that takes one. All
        are checked before the first is added."""
        given = items("calls", calls, "arguments")
        jobs = [self.new_job(self._written(index, one), self._options) for index, one in enumerate(given)]
        added = await self._queue().add_many(jobs, transaction=self._transaction)
        return added.through(_Results(self)) if isinstance(added, AddedJobs) else [self.typed(job) for job in added]

    def _written(self, index: int, call: Any) -> Any:
        try:
            if self.parameters.single is not None:
                return self.parameters.write((), {self.parameters.single: call})
            if not isinstance(call, Mapping):
                raise InvalidOption("arguments", call, "must be a dict of arguments")
            named = cast("Mapping[str, Any]", call)
            return self.parameters.write((), {text("arguments", name): value for name, value in named.items()})
        except InvalidOption as refused:
            raise InvalidOption(f"calls[{index}].{refused.field}", refused.value, refused.rule) from None

    def options(self, *, transaction: Any = None, **options: Unpack[JobOptions]) -> Self:
        """Returns the task with other options for its jobs: `task.options(delay=60).add(…)`. With `transaction`, where
        the protocol can, jobs are added inside the caller's own transaction, given as its driver's connection."""
        check_names(options, ("transaction",), f"task {self.name}")
        given = cast("dict[str, Any]", options)
        merged = {**self._options, **given}
        for one, excludes in (("delay", "run_at"), ("run_at", "delay")):
            if one in given and excludes not in given:
                merged.pop(excludes, None)
        NewJob(None, **merged)  # bad values are refused here, not at each add
        other = copy(self)
        other._options = merged
        if transaction is not None:
            other._transaction = transaction
        return other

    @overload
    def s(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    @overload
    def s(self: Task[Concatenate[Any, Rest], R], *args: Rest.args, **kwargs: Rest.kwargs) -> Call[R]: ...
    def s(self, *args: Any, **kwargs: Any) -> Call[R]:
        """Returns this call without adding it, as a part of a chain, group or chord. One required parameter may be left
        out, or any be given as `previous`: it gets the result of the step before."""
        if self._transaction is not None:
            raise InvalidOption("transaction", self._transaction, "can't be used in a chain, group or chord")
        given = self.parameters.write_some(args, kwargs)
        return Call(self, given.data, self._options, given.missing, given.marked)

    # --- schedules --------------------------------------------------------------------------------------------------

    async def schedule(
        self,
        key: str,
        *,
        every: Seconds | None = None,
        cron: str | None = None,
        tz: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        limit: int | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        immediately: bool = False,
        **named: Any,
    ) -> Schedule:
        """Creates or replaces a schedule that runs the task, each time with these arguments: `day="mon"`, or
        `arguments={"limit": 5}` for one that has the name of an option."""
        new = self.new_job(self.parameters.write((), {**(arguments or {}), **named}), {})
        return await self._queue().schedule(
            key,
            every=every,
            cron=cron,
            tz=tz,
            name=self._job_name,
            data=new.data,
            limit=limit,
            start_at=start_at,
            end_at=end_at,
            immediately=immediately,
            **self._options,
        )

    async def unschedule(self, key: str) -> bool:
        """Deletes a schedule. Returns False if there was none."""
        return await self._queue().unschedule(key)

    def on_failed(self, hook: AnyHook) -> AnyHook:
        """Calls the function with every job of the task that has failed for good. Usable as a decorator."""
        self.app.add_hook(self, hook)
        return hook

    # --- reading ----------------------------------------------------------------------------------------------------

    async def get(self, job_id: str) -> Job[R] | None:
        """Returns a job of the task as it is now, or None."""
        job = await self._queue().get(job_id)
        return None if job is None else self.typed(job)

    async def wait(self, job_id: str, timeout: Seconds | None = None) -> R:
        """Waits until the job has completed and returns its result. Raises JobFailed, JobNotFound or WaitTimeout."""
        return self.read_result(job_id, await self._queue().wait(job_id, timeout))

    # --- for the app and its workers --------------------------------------------------------------------------------

    def new_job(self, data: Any, options: Mapping[str, Any]) -> NewJob:
        """Returns the job for arguments that are JSON already."""
        named = dict(options)
        if self.settings.unique is not None and "unique" not in named:
            named["unique"] = self.settings.unique.key(self.name, data)
        if self.settings.limit_by is not None:
            named["extra"] = {**named.get("extra", {}), **self._key_options(data)}
        for middleware in (self.app.middleware, self.settings.middleware):
            if middleware.adding:
                traces = self.app.connection.backend.traces
                data, native = middleware.with_context(self.name, self.queue, data, traces)
                if native:
                    named["extra"] = {**native, **named.get("extra", {})}
        return NewJob(data, self._job_name, **named)

    def _key_options(self, data: Any) -> Mapping[str, Any]:
        """Returns the native options that count a job for the value of the parameter that limits hold by."""
        value = data.get(self.settings.limit_by) if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] JSON
        limits = self.app.connection.backend.key_limits
        if limits is None or value is None:
            return {}
        return limits.job_options(value if isinstance(value, str) and value else codec.dumps(value).decode())

    def read_result(self, job_id: str, result: Any) -> R:
        """Returns a job's result as the type that the function returns. Raises MalformedPayload."""
        try:
            return self.parameters.result.read(result)
        except Misfit as misfit:
            raise MalformedPayload(f"the result of job {job_id!r} of task {self.name}: {misfit}") from None

    def make_runner(self, queue: str) -> Runner:
        """Returns the runner for a Worker of your own: `Worker({"emails": send_welcome, "other": handler}, …)`."""
        if queue != self.queue:
            raise InvalidOption("queue", queue, f"is not the queue of task {self.name}, which is {self.queue!r}")
        return self.app.make_runner(queue)

    def _queue(self) -> Queue:
        return self.app.queue(self.queue)

    def typed(self, job: Job[Any]) -> Job[R]:
        """Returns a job of this task with its result as the type that the function returns."""
        if job.result is not None:
            job = replace(job, result=self.read_result(job.id, job.result))
        object.__setattr__(job, "origin", _Results(self))
        return job

    def __copy__(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.function.__module__, self.function.__qualname__)


class CoroutineTask(Task[P, R]):
    """A task whose function is a coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        """Calls the function itself, without a job. Dependencies must be given."""
        return self.function(*args, **kwargs)


class FunctionTask(Task[P, R]):
    """A task whose function is a plain function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself, without a job. Dependencies must be given."""
        return self.function(*args, **kwargs)


class _Results:
    """Waits for a task's jobs and returns their results typed."""

    __slots__ = ("_task",)

    def __init__(self, task: Task[..., Any]) -> None:
        self._task = task

    async def wait(self, job_id: str, timeout: float | timedelta | None = None) -> Any:
        return await self._task.wait(job_id, timeout)


def _find(module: str, path: str) -> Any:
    """Returns the task that a module has under this name. Used in other processes."""
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return cast("Any", found if isinstance(found, Task) else found.inner)  # a blocking task has the task inside
