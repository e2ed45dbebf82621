"""Makes a task of a function, and refuses what its protocol lacks when it is defined."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from jobwire import spelling
from jobwire.backoff import Backoff
from jobwire.boundary import Feature
from jobwire.checks import Seconds, seconds, text, whole
from jobwire.errors import InvalidOption
from jobwire.options import JobOptions, Keep, NewJob, Target, Unique, check_names
from jobwire.rate import Rate, rate_of
from jobwire.required_features import require_for_job
from jobwire.tasks.middleware import Middleware
from jobwire.tasks.parameters import Parameters
from jobwire.tasks.task import CoroutineTask, FunctionTask, Task, TaskSettings
from jobwire.tasks.unique import By
from jobwire.worker.handlers import Executor

if TYPE_CHECKING:
    from jobwire.tasks.app import App

_OWN = ("queue", "name", "executor", "rate", "max_running", "limit_by", "unique", "middleware", "on_failed")


class TaskOptions(TypedDict, total=False):
    """The options of a task's jobs as keywords. NewJob describes each."""

    priority: int | None
    delay: Seconds | None
    attempts: int | None
    backoff: Backoff | None
    timeout: Seconds | None
    keep_completed: int | Keep | None
    keep_failed: int | Keep | None
    lifo: bool
    target: Target | None
    expires: Seconds | None
    extra: dict[str, Any]


def define(
    app: App,
    function: Callable[..., Any],
    defaults: JobOptions,
    *,
    queue: str | None = None,
    name: str | None = None,
    executor: Executor | None = None,
    rate: Rate | None = None,
    max_running: int | None = None,
    limit_by: str | None = None,
    unique: By | None = None,
    middleware: Sequence[Any] = (),
    **options: Any,
) -> Task[..., Any]:
    """Returns the task of a function. Raises InvalidOption or NotSupported."""
    is_async = _check_function(function)
    check_names(options, _OWN, "a task")
    for one in ("id", "parent", "run_at"):
        if one in options:
            raise InvalidOption(one, options[one], "belongs to one job: use task.options(…).add(…)")
    can = app.capabilities
    parameters = Parameters(function)
    job_name = function.__name__ if name is None else text("name", name)
    settings = TaskSettings(
        queue=job_name if queue is None else text("queue", queue),
        name=job_name,
        executor=_executor(executor, is_async=is_async),
        timeout=_timeout(options.get("timeout", defaults.get("timeout"))),
        rate=rate_of("rate", rate),
        max_running=None if max_running is None else whole("max_running", max_running, minimum=1),
        unique=_unique(unique, job_name, parameters),
        limit_by=_limit_by(limit_by, job_name, parameters, has_limit=rate is not None or max_running is not None),
        middleware=Middleware(middleware),
    )
    if limit_by is not None:
        can.require(Feature.KEY_LIMITS)
    elif rate is not None:
        can.require(Feature.RATE_LIMIT)
    if max_running is not None and limit_by is None:
        can.require(Feature.LIMITS)
    kept: dict[str, Any] = {**defaults, **options}
    if not can.has(Feature.TIMEOUTS):
        kept.pop("timeout", None)  # the worker sees to it
    job = NewJob(None, unique=None if settings.unique is None else Unique("key", settings.unique.ttl), **kept)
    require_for_job(can, settings.queue, job)
    app.connection.backend.check(settings.queue, job)
    if is_async:
        return CoroutineTask[..., Any](app, function, parameters, settings, kept)
    return FunctionTask[..., Any](app, function, parameters, settings, kept)


def _check_function(function: Any) -> bool:
    """Refuses what can't be a task. Returns True for a coroutine function."""
    if isinstance(function, Task):
        raise InvalidOption("task", repr(cast("Any", function)), "is a task already")
    if not inspect.isfunction(function):
        raise InvalidOption("task", function, "must be a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidOption("task", function, "has a yield in it, so that calling it runs nothing; return the result")
    if "<lambda>" in function.__qualname__:
        raise InvalidOption("task", function, "is a lambda, which has no name")
    return inspect.iscoroutinefunction(function)


def _executor(given: Executor | None, *, is_async: bool) -> Executor:
    if given not in (None, "async", "thread", "process"):
        raise InvalidOption("executor", given, "must be async, thread or process")
    if given == "async" and not is_async:
        raise InvalidOption("executor", given, "needs a coroutine function")
    if given == "thread" and is_async:
        raise InvalidOption("executor", given, "needs a plain function")
    return given or ("async" if is_async else "thread")


def _timeout(given: Seconds | None) -> float | None:
    return None if given is None else seconds("timeout", given, minimum=0.001)


def _limit_by(given: Any, task: str, parameters: Parameters, *, has_limit: bool) -> str | None:
    if given is None:
        return None
    name = text("limit_by", given)
    if name not in parameters.fields:
        raise spelling.unknown(name, name, parameters.fields, f"task {task}", word="parameter")
    if not has_limit:
        raise InvalidOption("limit_by", given, "needs a limit: rate=Rate(…) or max_running=n")
    return name


def _unique(given: Any, task: str, parameters: Parameters) -> By | None:
    if given is None:
        return None
    if not isinstance(given, By):
        raise InvalidOption("unique", given, 'must be by(…), e.g. by("user_id", for_=3600)')
    given.check(task, parameters.fields)
    return given
