"""Child processes for handlers: a crash, an `os._exit` or the kernel's OOM killer ends one job, not the worker.

Each busy slot has one child, kept for the next job. Parent and child talk over a pipe: the parent sends a job, the
child answers with any number of requests (calls of methods of its job) and one end. A child that must stop is killed.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from jobwire import codec
from jobwire.errors import (
    HandlerCrashed,
    InvalidOption,
    JobwireError,
    RateLimited,
    Snooze,
    Unrecoverable,
    WaitForChildren,
)
from jobwire.flow import FlowJob
from jobwire.model import Children, Job, JobKey, JobTree
from jobwire.worker.active import BlockingJob, Running
from jobwire.worker.threads import Threads

WISHES = (Snooze, RateLimited, WaitForChildren)
"""What a handler raises to have its job run again later. They cross the pipe as they are."""


class RemoteError(Exception):
    """An error raised in a child process; its stack is text, since the frames are gone."""

    def __init__(self, kind: str, message: str, stack: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.stack = stack


class EncodedResult(bytes):
    """A result that the child has already turned into JSON."""


class ProcessJob(Running):
    """What a handler in a child process gets: the same names as BlockingJob, answered by the parent."""

    __slots__ = ("_pipe", "lost", "token")

    def __init__(self, job: Job, token: str, pipe: Connection) -> None:
        super().__init__(job)
        self.token = token
        self.lost = threading.Event()
        """Never set here: a process whose lock is lost is killed."""
        self._pipe = pipe

    def update_progress(self, value: Any) -> None:
        self._ask("update_progress", value)

    def log(self, line: str, *, keep: int = 0) -> None:
        self._ask("log", str(line), keep=keep)

    def extend(self) -> None:
        self._ask("extend")

    def update_data(self, data: Any) -> None:
        self._ask("update_data", data)

    def add_children(self, *children: FlowJob) -> list[JobTree]:
        return self._ask("add_children", *children)

    def children(self) -> Children:
        return self._ask("children")

    def children_values(self) -> dict[JobKey, Any]:
        return dict(self.children().values)

    def wait_for_children(self) -> None:
        self._ask("wait_for_children")

    def connection(self) -> Any:
        raise InvalidOption(
            "executor", "process", "can't be with job.connection(), which stays in the worker's process"
        )

    def _ask(self, what: str, *args: Any, **named: Any) -> Any:
        """Have the parent process call the method of its own job; what it returned or raised."""
        self._pipe.send((what, (args, named)))
        answer, error = self._pipe.recv()
        if error is not None:
            raise error
        return answer


def child_main(handler: Callable[[Any], Any], pipe: Connection) -> None:
    """The child: run jobs until the parent hangs up. Signals of the terminal are the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        try:
            job, token = pipe.recv()
        except (EOFError, OSError):
            return
        answer: tuple[str, Any]
        try:
            result = handler(ProcessJob(job, token, pipe))
            if asyncio.iscoroutine(result):
                result = asyncio.run(result)
            answer = ("result", codec.dumps(result, field="result"))
        except WISHES as wish:
            answer = ("wish", wish)
        except Unrecoverable as final:
            answer = ("unrecoverable", str(final))
        except BaseException as error:
            answer = ("error", (type(error).__name__, str(error), traceback.format_exc()))
        try:
            pipe.send(answer)
        except OSError:
            return


class _Child:
    def __init__(self, handler: Callable[[Any], Any]) -> None:
        # Not fork: a forked copy of a process with threads and open connections may hang in any of their locks.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=child_main, args=(handler, theirs), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def run(self, job: BlockingJob) -> EncodedResult:
        """Run one job to its end; called in a thread."""
        try:
            snapshot = replace(job.snapshot, origin=None, raw={})
            self._pipe.send((snapshot, job.token))
            while True:
                what, value = self._pipe.recv()
                match what:
                    case "result":
                        return EncodedResult(value)
                    case "wish":
                        raise value
                    case "unrecoverable":
                        raise Unrecoverable(value)
                    case "error":
                        raise RemoteError(*value)
                    case _:
                        self._pipe.send(_serve(job, what, value))
        except (EOFError, OSError):
            self._process.join()
            raise HandlerCrashed(f"the process that ran the handler died ({_cause(self._process.exitcode)})") from None

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def end(self) -> None:
        self._pipe.close()
        self._process.join(timeout=1.0)
        if self._process.is_alive():
            self.kill()


def _serve(job: BlockingJob, what: str, call: tuple[tuple[Any, ...], dict[str, Any]]) -> tuple[Any, Exception | None]:
    """Carry out a request of the child: what it returned, or the error for the child to raise."""
    try:
        return getattr(job, what)(*call[0], **call[1]), None
    except JobwireError as error:
        return None, error


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


class Processes:
    """As many child processes as are busy at once. Cancelled, a call kills its child."""

    def __init__(self, handler: Callable[[Any], Any], threads: Threads) -> None:
        self._handler = handler
        self._threads = threads
        self._idle: list[_Child] = []

    async def call(self, job: BlockingJob, begin: Callable[[], None]) -> EncodedResult:
        child = self._idle.pop() if self._idle else await self._threads.call(lambda: _Child(self._handler))
        begin()
        healthy = False
        try:
            result: EncodedResult = await self._threads.call(lambda: child.run(job))
            healthy = True
            return result
        except (RemoteError, Unrecoverable, *WISHES):
            healthy = True
            raise
        finally:
            if healthy and child.alive:
                self._idle.append(child)
            else:
                child.kill()

    def close(self) -> None:
        for child in self._idle:
            child.end()
        self._idle.clear()
