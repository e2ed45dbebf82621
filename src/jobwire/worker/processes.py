"""Child processes for handlers: a crash, an `os._exit` or the kernel's OOM killer ends one job, not the worker.

Each busy slot has one child, which is kept for the next job. Worker and child are connected by a pipe. The worker sends
a job. The child sends any number of requests (calls of methods of its job) and then one result. A child that must stop
is killed. The child's side, with its handling of signals and of the worker's end, is in `child.py`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Any

from jobwire.errors import HandlerCrashed, JobwireError, RateLimited, Snooze, Unrecoverable, WaitForChildren
from jobwire.worker.active import BlockingJob
from jobwire.worker.child import HELD_SIGNALS, child_main, received
from jobwire.worker.threads import Threads

worker_stopping: ContextVar[Callable[[], bool]] = ContextVar("worker_stopping", default=lambda: False)
"""Returns True if the worker that runs the job is stopping. Set by the worker for the tasks of its engine."""

_START_LIMIT = 120.0
"""Seconds for a child to start, to import the handler and to begin its first job."""
_ONE_SIGNAL = 2.0
"""Seconds within which a SIGTERM for a child and one for its worker count as one signal to both."""


class RemoteTraceback(Exception):
    """The traceback of an exception that was raised in a child process, as text, since frames can't be sent."""


class RemoteError(Exception):
    """An error that was raised in a child process."""

    def __init__(self, kind: str, message: str, stack: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.stack = stack


def remote_error(kind: str, message: str, stack: str) -> RemoteError:
    """Returns the error as one of a class with the name that it has in the child: logs and error trackers show that.
    Its cause is its traceback."""
    name = kind if kind.isidentifier() else RemoteError.__name__
    error = type(name, (RemoteError,), {"__module__": "builtins"})(kind, message, stack)
    error.__cause__ = RemoteTraceback(f"\n{stack}") if stack else None
    return error


class EncodedResult(bytes):
    """A result that the child has already turned into JSON."""


class _Left(Exception):
    """The child ended before it began the job."""


class _Child:
    def __init__(self, handler: Callable[[Any], Any]) -> None:
        # Not fork: a forked copy of a process with threads and open connections may hang in any of their locks.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        their_lifeline, lifeline = context.Pipe(duplex=False)
        self._process: BaseProcess = context.Process(
            target=child_main, args=(handler, theirs, their_lifeline), daemon=True
        )
        with _held_signals():
            self._process.start()
        theirs.close()
        their_lifeline.close()
        self._jobs = 0
        self._ended = True
        self._begun = False
        self._signalled = False
        # Closing it ends the process, also if the program ends or this object is dropped while the handler runs.
        self._close_lifeline = weakref.finalize(self, lifeline.close)

    @property
    def usable(self) -> bool:
        """True if the next job can be sent. A child that has got SIGTERM gets no further job."""
        return self._ended and not self._signalled and self._process.is_alive()

    def reserve(self) -> None:
        """Keeps other jobs away. Called before a thread runs the job: if the call is cancelled before the thread
        begins, the child must not count as idle, or two jobs would share its pipe."""
        self._jobs += 1
        self._ended = self._begun = False

    def run(self, job: BlockingJob, on_begun: Callable[[], object]) -> EncodedResult:
        """Runs the job for which the child was reserved, to its end. Called in a thread."""
        try:
            self._pipe.send((replace(job.snapshot, origin=None, raw={}), job.token))
            what, value = self._serve(job, on_begun)
        except (EOFError, OSError):
            self._process.join()
            if not self._begun and self._jobs > 1:
                raise _Left from None  # it ended between two jobs, by a signal, so this one has not run
            raise HandlerCrashed(f"the process that ran the handler died ({_cause(self._process.exitcode)})") from None
        self._ended = True
        match what:
            case "result":
                return EncodedResult(value)
            case "snooze":
                raise Snooze(*value)
            case "rate limited":
                raise RateLimited(*value)
            case "wait for children":
                raise WaitForChildren(value[1])
            case "unrecoverable":
                raise Unrecoverable(value)
            case _:
                raise remote_error(*value)

    def _serve(self, job: BlockingJob, on_begun: Callable[[], object]) -> tuple[str, Any]:
        """Answers the child's requests until the job ends. Returns the child's last message."""
        if not self._pipe.poll(_START_LIMIT):
            raise HandlerCrashed(f"the process that runs the handler has not begun within {_START_LIMIT:g} s")
        judged_at: float | None = None
        while True:
            if judged_at is not None and not self._pipe.poll(max(0.0, judged_at - time.monotonic())):
                judged_at = None
                if not worker_stopping.get()():
                    raise HandlerCrashed("the process that ran the handler was sent SIGTERM")
            what, value = received(self._pipe)
            match what:
                case "begun":
                    self._begun = True
                    on_begun()
                case "leaving":
                    raise _Left
                case "sigterm":
                    self._signalled = True
                    judged_at = time.monotonic() + _ONE_SIGNAL
                case "request":
                    self._pipe.send(_carry_out(job, *value))
                case _:
                    return what, value

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._close()

    def end(self) -> None:
        self._pipe.close()
        self._process.join(timeout=1.0)
        if self._process.is_alive():
            self.kill()
        self._close()

    def _close(self) -> None:
        self._pipe.close()
        self._close_lifeline()


@contextmanager
def _held_signals() -> Generator[None]:
    """Blocks the signals in this thread, so that a process started inside the block starts with them blocked. The main
    thread still gets signals for this process meanwhile."""
    resource_tracker.ensure_running()  # otherwise started inside the block, and it unblocks them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _carry_out(job: BlockingJob, method: str, args: Any, named: Any) -> tuple[Any, Exception | None]:
    """Carries out a request of the child. Returns what the method returned, and the error for the child to raise."""
    try:
        return getattr(job, method)(*args, **named), None
    except JobwireError as error:
        return None, error
    except Exception as error:
        return None, RuntimeError(f"{type(error).__name__}: {error}")


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"
    return f"exit code {code}"


class Processes:
    """Child processes: as many as are busy at once. A call that is cancelled kills its child."""

    def __init__(self, handler: Callable[[Any], Any], threads: Threads) -> None:
        self._handler = handler
        self._threads = threads
        self._idle: list[_Child] = []

    async def call(self, job: BlockingJob, begin: Callable[[], None]) -> EncodedResult:
        """Runs the job in a child. `begin` is called when the child has started and has the job."""
        loop, over = asyncio.get_running_loop(), False

        def begun() -> None:
            if not over:
                begin()

        try:
            while True:
                child = self._take() or await self._threads.call(lambda: _Child(self._handler))
                child.reserve()
                try:
                    return await self._threads.call(partial(child.run, job, partial(loop.call_soon_threadsafe, begun)))
                except _Left:
                    continue
                finally:
                    if child.usable:
                        self._idle.append(child)
                    else:
                        child.kill()
        finally:
            over = True

    def _take(self) -> _Child | None:
        while self._idle:
            child = self._idle.pop()
            if child.usable:
                return child
            child.kill()
        return None

    def close(self) -> None:
        for child in self._idle:
            child.end()
        self._idle.clear()
