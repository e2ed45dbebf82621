"""The child's side of executor="process": runs jobs that the worker sends through a pipe, one at a time.

A child ends with its worker. It holds the reading end of a pipe, the lifeline, whose other end only the worker has and
into which nothing is ever written: when the worker is gone, however it ended, the pipe closes. The kernel is asked to
kill the child at that moment (Linux), which also stops a handler in C code that holds the GIL. A thread watches the
pipe as well, for other systems, and for the case that a forked copy of the worker keeps the pipe open.

Signals. A service manager or a terminal sends SIGTERM or SIGINT to every process of a group, worker and children; then
the worker stops claiming and lets running jobs finish, so a child must not end by itself. SIGINT is ignored: it comes
from terminals only. SIGTERM may also be meant for one child alone, and a child can't see which it was. So it reports
the signal to the worker, which kills it after a short while unless the worker has got a signal to stop as well. A child
without a job ends at once. A handler inside C code that holds the GIL delays the report. SIGKILL always works.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from typing import Any, NoReturn

from jobwire import codec
from jobwire.errors import InvalidOption, LostLock, RateLimited, Snooze, Unrecoverable, WaitForChildren
from jobwire.failure import begin_in_users_code, exit_text, kind_of, message_of, stack_of
from jobwire.flow import FlowJob
from jobwire.forking import leave_if_forked
from jobwire.model import Children, Job, JobKey, JobTree
from jobwire.running_job import Running

_RUN_LATER = {"snooze": Snooze, "rate limited": RateLimited, "wait for children": WaitForChildren}
"""The exceptions by which a handler has its job run again later, by their names in messages to the worker."""

HELD_SIGNALS = {signal.SIGTERM, signal.SIGINT}
"""Blocked while a child starts, until it has installed its handlers of them."""

_LOOK_EVERY = 1.0


def received(pipe: Connection) -> Any:
    """Returns the next object from the pipe. `Connection.recv` reads it from a view of a buffer, which has crashed
    Python 3.12.1 ("deallocated BytesIO object has exported buffers")."""
    return pickle.loads(pipe.recv_bytes())  # noqa: S301 - the other end is the worker's own process


class PipeToWorker:
    """The child's end of the pipe, shared by the handler, threads that it made, and the thread that watches."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._asking = threading.Lock()
        self._sending = threading.Lock()
        self._job: ProcessJob | None = None
        self._is_first = True

    def receive(self) -> tuple[Job, str]:
        return received(self._pipe)

    def begin(self, job: ProcessJob) -> None:
        """Reports that the job has arrived and will run. A child that ends before this has not touched the job."""
        with self._sending:
            self._is_first = False
            self._job = job
            self._pipe.send(("begun", None))

    def end(self, answer: tuple[str, Any]) -> None:
        """Sends how the job ended. Threads that still run can make no calls for it afterwards."""
        encoded = _pickled(answer)
        with self._asking, self._sending:
            self._job = None
            self._pipe.send_bytes(encoded)

    def ask(self, job: ProcessJob, what: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Has the worker call a method of its own job. Returns what that returned, or raises what it raised."""
        encoded = ForkingPickler.dumps(("request", (what, args, named)))
        with self._asking:
            with self._sending:
                if self._job is not job:
                    raise LostLock(f"job {job.id!r} has ended: threads that it left running can't change it any more")
                self._pipe.send_bytes(encoded)
            answer, error = received(self._pipe)
        if error is not None:
            raise error
        return answer

    def report_sigterm(self) -> None:
        """Reports the signal to the worker, which decides. Between two jobs the child ends instead. Before its first
        job it counts as busy, since that job is already on its way."""
        with self._sending:
            idle = self._job is None and not self._is_first
            self._pipe.send(("leaving" if idle else "sigterm", None))
            if idle:
                os._exit(128 + signal.SIGTERM)


class ProcessJob(Running):
    """The job that a handler in a child process gets. It has BlockingJob's methods, which the worker carries out."""

    __slots__ = ("_pipe", "cancelled", "lost", "token")

    def __init__(self, job: Job, token: str, pipe: PipeToWorker) -> None:
        super().__init__(job)
        self.token = token
        self.lost = threading.Event()
        """Never set here: a process whose lease is lost is killed."""
        self.cancelled = False
        """Never True here: a process whose job is cancelled is killed."""
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

    def transaction(self) -> Any:
        raise InvalidOption(
            "executor", "process", "can't be with job.transaction(), which stays in the worker's process"
        )

    def _ask(self, what: str, *args: Any, **named: Any) -> Any:
        return self._pipe.ask(self, what, args, named)


def child_main(handler: Callable[[Any], Any], pipe: Connection, lifeline: Connection) -> None:
    """Runs jobs until the worker closes the pipe. Every exception of a handler is sent as an answer and never ends the
    child."""
    to_worker = PipeToWorker(pipe)
    arrived, arrives = os.pipe()
    os.set_blocking(arrives, False)
    _end_with_worker(lifeline)
    threading.Thread(target=_watch, args=(to_worker, lifeline, arrived), name="jobwire-watch", daemon=True).start()
    while True:
        _heed_signals(arrives)  # for each job, since the one before may have changed that
        try:
            snapshot, token = to_worker.receive()
        except (EOFError, OSError):
            return
        job = ProcessJob(snapshot, token, to_worker)
        try:
            to_worker.begin(job)
            to_worker.end(_run(handler, job))
        except OSError:
            return


def _run(handler: Callable[[Any], Any], job: ProcessJob) -> tuple[str, Any]:
    process = os.getpid()
    try:
        return _call(handler, job)
    finally:
        leave_if_forked(process, f"the handler of job {job.id}")


def _call(handler: Callable[[Any], Any], job: ProcessJob) -> tuple[str, Any]:
    try:
        result = handler(job)
        if asyncio.iscoroutine(result):
            result = asyncio.run(result)
        return "result", codec.dumps(result, field="result")
    except BaseException as error:
        try:
            begin_in_users_code(error)
            return _answer(error)
        except BaseException:
            return "error", ("Exception", "the handler raised an exception that can't be shown", "")


def _answer(error: BaseException) -> tuple[str, Any]:
    for name, kind in _RUN_LATER.items():
        if issubclass(type(error), kind):
            return name, (getattr(error, "delay", None), _text(message_of(error)))
    if issubclass(type(error), Unrecoverable):
        return "unrecoverable", _text(message_of(error))
    message = exit_text(error) if issubclass(type(error), SystemExit) else message_of(error)
    return "error", (kind_of(error), _text(message), _text(stack_of(error)))


def _text(text: str) -> str:
    """Returns the text as a plain str in valid Unicode, which every process and every log accepts. An exception's str()
    may return a subclass of str, and half of a surrogate pair."""
    return str.encode(text, "utf-8", "backslashreplace").decode()


def _pickled(answer: tuple[str, Any]) -> Any:
    try:
        return ForkingPickler.dumps(answer)
    except Exception as error:
        message = f"the handler's exception can't be sent to the worker ({answer[0]}): {_text(message_of(error))}"
        return ForkingPickler.dumps(("error", ("TypeError", message, "")))


# --- the end of the worker, signals ---------------------------------------------------------------------------------


def _end_with_worker(lifeline: Connection) -> None:
    """Asks the kernel to kill this process when the worker's end of the lifeline is closed."""
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _heed_signals(arrives: int) -> None:
    """Has each SIGTERM written into the file as it arrives, because C code of a handler may keep Python's own signal
    handlers waiting. SIGTERM is not set to SIG_IGN, which programs started by the handler would inherit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    signal.set_wakeup_fd(arrives, warn_on_full_buffer=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_SIGNALS)


def _watch(to_worker: PipeToWorker, lifeline: Connection, arrived: int) -> NoReturn:
    worker = parent_process()
    while True:
        ready = wait([lifeline, arrived], timeout=_LOOK_EVERY)
        if lifeline in ready or (worker is not None and os.getppid() != worker.pid):
            os.kill(os.getpid(), signal.SIGKILL)
        if arrived in ready and signal.SIGTERM in os.read(arrived, 64):
            with contextlib.suppress(OSError):  # the worker is gone, and the next turn of this loop finds that
                to_worker.report_sigterm()
