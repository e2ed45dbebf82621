"""Running a handler and turning whatever it does into an outcome. The one place that catches every exception."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

from jobwire import codec
from jobwire.backend import Claim, Completed, Failed, Outcome, Parked, Released, Snoozed, Throttled
from jobwire.errors import (
    HandlerTimeout,
    InvalidOption,
    NotSupported,
    RateLimited,
    Snooze,
    Unrecoverable,
    WaitForChildren,
)
from jobwire.worker.active import ActiveJob, BlockingJob
from jobwire.worker.processes import EncodedResult, Processes, RemoteError
from jobwire.worker.threads import Threads

Executor = Literal["async", "thread", "process"]
Handler = Callable[[Any], Any]


class Runner(Protocol):
    """Runs the user's handler on a job. Cancelling the call stops the work as far as it can be stopped."""

    async def __call__(self, job: ActiveJob) -> Any: ...

    def close(self) -> None: ...


class AsyncRunner:
    """A coroutine function runs in the worker's own event loop."""

    def __init__(self, handler: Callable[[ActiveJob], Awaitable[Any]]) -> None:
        self._handler = handler

    async def __call__(self, job: ActiveJob) -> Any:
        return await self._handler(job)

    def close(self) -> None: ...


class ThreadRunner:
    """A plain function runs in a thread."""

    def __init__(self, handler: Handler, name: str) -> None:
        self._handler = handler
        self._threads = Threads(name)

    async def __call__(self, job: ActiveJob) -> Any:
        blocking = BlockingJob(job, asyncio.get_running_loop())
        return await self._threads.call(lambda: self._handler(blocking))

    def close(self) -> None:
        self._threads.close()


class ProcessRunner:
    """A function runs in a child process, driven by a thread."""

    def __init__(self, handler: Handler, name: str) -> None:
        self._threads = Threads(name)
        self._processes = Processes(handler, self._threads)

    async def __call__(self, job: ActiveJob) -> Any:
        return await self._processes.call(BlockingJob(job, asyncio.get_running_loop()))

    def close(self) -> None:
        self._processes.close()
        self._threads.close()


def make_runner(handler: Handler, executor: Executor | None, name: str) -> Runner:
    """The runner for a handler: by its kind, unless an executor is asked for."""
    if not callable(handler):
        raise InvalidOption("handler", handler, "must be a function or another callable")
    if executor not in (None, "async", "thread", "process"):
        raise InvalidOption("executor", executor, "must be async, thread or process")
    is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004 - the method itself is looked at
    )
    match executor or ("async" if is_async else "thread"):
        case "async":
            if not is_async:
                raise InvalidOption("executor", "async", "needs a handler that is a coroutine function")
            return AsyncRunner(handler)
        case "thread":
            if is_async:
                raise InvalidOption("executor", "thread", "needs a handler that is a plain function")
            return ThreadRunner(handler, name)
        case "process":
            return ProcessRunner(handler, name)


async def run_job(runner: Runner, job: ActiveJob, timeout: float | None) -> Outcome:
    """What to tell the store about the job. Never raises, not even when cancelled: a cancelled run is a release."""
    claim = job.claim
    if claim.doomed is not None:
        return Failed(claim, claim.doomed, final=True)
    try:
        result = await (runner(job) if timeout is None else _within(timeout, runner, job))
        encoded = result if isinstance(result, EncodedResult) else codec.dumps(result, field="result")
        return Completed(claim, encoded)
    except (Snooze, RateLimited, WaitForChildren) as request:
        return _put_back(job, claim, request)
    except Unrecoverable as error:
        return Failed(claim, str(error), _stack(error), final=True, kind=_kind(error))
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is not None and task.cancelling() > 0:
            return Released(claim)
        return Failed(claim, "the handler was cancelled from within", _stack(cancelled), kind=_kind(cancelled))
    except SystemExit as leaving:
        # sys.exit() in a handler ends that handler, not the worker and the jobs beside it.
        return Failed(claim, f"the handler called sys.exit({leaving.code!r})", _stack(leaving), kind=_kind(leaving))
    except Exception as error:
        return Failed(claim, _message(error), _stack(error), kind=_kind(error))


def _put_back(job: ActiveJob, claim: Claim, request: Snooze | RateLimited | WaitForChildren) -> Outcome:
    """A handler that asks for its job to be run again later; a failure if the protocol can't do what it asks."""
    if isinstance(request, Snooze):
        return Snoozed(claim, request.delay)
    try:
        if isinstance(request, RateLimited):
            job.require("throttle", "rate limit from a handler")
            return Throttled(claim, request.delay)
        job.require("flows", "children of jobs")
        return Parked(claim)
    except NotSupported as refusal:
        return Failed(claim, str(refusal), _stack(request), final=True, kind=_kind(refusal))


async def _within(timeout: float, runner: Runner, job: ActiveJob) -> Any:
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return await runner(job)
    except TimeoutError as error:
        if limit.expired():  # otherwise it is the handler's own
            raise HandlerTimeout(f"the handler ran longer than its timeout of {timeout:g} s") from error
        raise


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _kind(error: BaseException) -> str:
    return error.kind if isinstance(error, RemoteError) else type(error).__name__


def _stack(error: BaseException) -> str:
    if isinstance(error, RemoteError):
        return error.stack
    return "".join(traceback.format_exception(error))
