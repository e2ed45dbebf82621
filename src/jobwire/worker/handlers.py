"""Runs a handler and turns its result or its exception into an outcome. The one place that catches every exception."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, cast, runtime_checkable

from jobwire import codec
from jobwire.boundary import Claim, Completed, Failed, Feature, Outcome, Parked, Snoozed, Throttled
from jobwire.checks import seconds
from jobwire.errors import (
    InvalidOption,
    JobCancelled,
    NotSupported,
    RateLimited,
    Snooze,
    Unrecoverable,
    WaitForChildren,
)
from jobwire.failure import begin_in_users_code, exit_text, kind_of, message_of, stack_of
from jobwire.journal import Journal
from jobwire.worker.active import ActiveJob, BlockingJob
from jobwire.worker.processes import EncodedResult, Processes, RemoteError
from jobwire.worker.settings import check_handler, check_picklable
from jobwire.worker.threads import Threads

Executor = Literal["async", "thread", "process"]
Handler = Callable[[Any], Any]

Begin = Callable[[], None]
"""Called when a handler is about to run, so that its timeout does not include the start of a child process."""


class Runner(Protocol):
    """Runs the user's handler on a job. Cancelling the call stops the handler, if it can be stopped."""

    def can_interrupt(self, job: ActiveJob) -> bool:
        """Returns False if the job's handler goes on after the call is cancelled, and its result is lost."""
        ...

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any: ...

    def runs_here(self) -> bool:
        """Returns True if the calling thread belongs to this runner."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class MakesRunner(Protocol):
    """Can be given to a Worker in place of a handler: it makes the runner itself."""

    def make_runner(self, queue: str) -> Runner:
        """Returns a new runner for the jobs of this queue."""
        ...


class AsyncRunner:
    """Runs a coroutine function in the worker's event loop."""

    def __init__(self, handler: Callable[[ActiveJob], Awaitable[Any]]) -> None:
        self._handler = handler

    def can_interrupt(self, job: ActiveJob) -> bool:
        return True

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any:
        begin()
        return await self._handler(job)

    def runs_here(self) -> bool:
        return False

    def close(self) -> None: ...


class ThreadRunner:
    """Runs a plain function in a thread."""

    def __init__(self, handler: Handler, name: str) -> None:
        self._handler = handler
        self._threads = Threads(name)

    def can_interrupt(self, job: ActiveJob) -> bool:
        return False

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any:
        begin()
        blocking = BlockingJob(job, asyncio.get_running_loop())
        return await self._threads.call(lambda: self._handler(blocking))

    def runs_here(self) -> bool:
        return self._threads.runs_here()

    def close(self) -> None:
        self._threads.close()


class ProcessRunner:
    """Runs a function in a child process, with a thread of the worker that talks to it."""

    def __init__(self, handler: Handler, name: str) -> None:
        self._threads = Threads(name)
        self._processes = Processes(handler, self._threads)

    def can_interrupt(self, job: ActiveJob) -> bool:
        return True

    async def __call__(self, job: ActiveJob, begin: Begin) -> Any:
        return await self._processes.call(BlockingJob(job, asyncio.get_running_loop()), begin)

    def runs_here(self) -> bool:
        return self._threads.runs_here()

    def close(self) -> None:
        self._processes.close()
        self._threads.close()


def make_runner(handler: Handler, executor: Executor | None, name: str) -> Runner:
    """Returns the runner for a handler: the executor that is asked for, or the one for its kind of function."""
    is_async = check_handler(handler)
    if executor not in (None, "async", "thread", "process"):
        raise InvalidOption("executor", executor, "must be async, thread or process")
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
            check_picklable(handler)
            return ProcessRunner(handler, name)


class Run(Protocol):
    """One run of a job, which the worker may stop."""

    @property
    def job(self) -> ActiveJob: ...

    @property
    def is_stopped(self) -> bool:
        """True if the worker has stopped the run, or is being cancelled itself."""
        ...

    def begin(self) -> None:
        """Called when the handler is about to run."""
        ...

    def stopped(self, cancelled: BaseException | None) -> Outcome:
        """Returns the outcome of a run that the worker has stopped."""
        ...


async def run_job(runner: Runner, run: Run, journal: Journal) -> Outcome:
    """Runs the handler and returns its outcome.

    Every exception of the handler is caught here, because otherwise the job would have no outcome. Only GeneratorExit
    leaves: Python raises it in every coroutine of a task at once, and the outermost one handles it.
    """
    job = run.job
    claim = job.claim
    if claim.doomed is not None:
        unread = Failed(claim, claim.doomed, final=True)
        journal.failed(unread)
        return unread
    try:
        try:
            result = await runner(job, run.begin)
        except (Snooze, RateLimited, WaitForChildren) as request:
            return _put_back(job, request)
        return Completed(claim, result if isinstance(result, EncodedResult) else codec.dumps(result, field="result"))
    except asyncio.CancelledError as cancelled:
        # A handler may have cancelled its own task. Releasing the job would make it run again, at once and without end.
        if run.is_stopped:
            return run.stopped(cancelled)
        return failure(claim, cancelled, journal, "the handler was cancelled from within")
    except JobCancelled as cancelled:  # raised by a handler in a thread that has seen `job.cancelled`
        return run.stopped(cancelled) if job.cancelled else failure(claim, cancelled, journal)
    except SystemExit as leaving:
        # sys.exit() in a handler ends that handler, not the worker and its other jobs.
        return failure(claim, leaving, journal, exit_text(leaving))
    except GeneratorExit:
        raise
    except BaseException as error:  # KeyboardInterrupt and exceptions of the user's own are among these
        return failure(claim, error, journal)


def _put_back(job: ActiveJob, request: Snooze | RateLimited | WaitForChildren) -> Outcome:
    """Returns the outcome of a handler that asks for its job to be run again later. A delay that is not a duration is
    the handler's error. Asking for something that the protocol lacks fails the job for good."""
    claim = job.claim
    try:
        match request:
            case Snooze():
                return Snoozed(claim, seconds("Snooze.delay", request.delay))
            case RateLimited():
                job.require(Feature.THROTTLE)
                return Throttled(claim, seconds("RateLimited.delay", request.delay))
            case WaitForChildren():
                job.require(Feature.FLOWS)
                return Parked(claim)
    except NotSupported as refusal:
        raise Unrecoverable(str(refusal)) from request


def failure(
    claim: Claim, error: BaseException, journal: Journal, message: str | None = None, *, final: bool = False
) -> Failed:
    """Logs a failed run and returns its outcome."""
    begin_in_users_code(error)
    # Not isinstance, which asks the exception for its class: that is the user's code too.
    final = final or issubclass(type(error), Unrecoverable)
    remote = cast("RemoteError", error) if issubclass(type(error), RemoteError) else None
    kind = kind_of(error) if remote is None else remote.kind
    stack = stack_of(error) if remote is None else remote.stack
    if remote is not None:
        remote.__traceback__ = None  # its frames are those that read the child's answer
    failed = Failed(claim, message or message_of(error), stack, final=final, kind=kind)
    journal.failed(failed, error)
    return failed
