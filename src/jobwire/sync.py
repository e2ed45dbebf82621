"""jobwire for blocking code: the names of `jobwire`, without async.

    from jobwire.sync import Queue

    with Queue("emails", "bullmq+redis://127.0.0.1:6379/0") as queue:
        job = queue.add({"to": "a@example.com"})
        print(job.wait(timeout=30))

Nothing is written twice: each class here is made from the asynchronous one, whose coroutines run in one event loop in
a background thread, the portal. The stub beside this file is made the same way, so editors and type checkers see it.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Never

from jobwire import claimed as _claimed
from jobwire import connection as _connection
from jobwire import flow as _flow
from jobwire import queue as _queue
from jobwire import queue_admin as _queue_admin
from jobwire import worker as _worker
from jobwire.blocking import Job, JobTree, Page, blocking_class, iterator_of, returned, wrapped
from jobwire.checks import Seconds
from jobwire.paging import job_pages
from jobwire.portal import portal
from jobwire.worker.worker import waits_for_itself

if TYPE_CHECKING:
    from jobwire.sync_tasks import App, Chain, Group, GroupJobs, Task, chain, chord, current_job, group, previous

__all__ = [
    "App",
    "Chain",
    "ClaimedJob",
    "Connection",
    "Flow",
    "Group",
    "GroupJobs",
    "Job",
    "JobTree",
    "Page",
    "Queue",
    "QueueAdmin",
    "Task",
    "Worker",
    "chain",
    "chord",
    "connect",
    "current_job",
    "group",
    "previous",
]
_TASKS = frozenset({"App", "Chain", "Group", "GroupJobs", "Task", "chain", "chord", "current_job", "group", "previous"})


Connection = blocking_class(_connection.Connection, ("address", "backend"))
Flow = blocking_class(_flow.Flow, ("connection",))


class QueueAdmin(blocking_class(_queue_admin.QueueAdmin)):  # type: ignore[misc]
    """Operators' half of a queue, `queue.admin`, whose calls block."""


_pages = iterator_of(job_pages)


@returned
class Queue(blocking_class(_queue.Queue, ("name", "connection"))):  # type: ignore[misc]
    """A queue whose calls block. Its arguments are those of `jobwire.Queue`."""

    def _take(self, inner: Any) -> None:
        self.inner = inner
        self.admin = wrapped(QueueAdmin, inner.admin)

    @functools.wraps(_queue.Queue.iter_jobs)
    def iter_jobs(self, *args: Any, **kwargs: Any) -> Iterator[Job]:
        for page in _pages(self, *args, **kwargs):  # the event loop is asked once per page, not once per job
            yield from page

    def __getattr__(self, name: str) -> Never:
        raise _queue_admin.missing_attribute("Queue", name)


@returned
class ClaimedJob(blocking_class(_claimed.ClaimedJob)):  # type: ignore[misc]
    """A claimed job whose calls block. `with job:` settles it by how the block ends."""


@returned
class Worker(blocking_class(_worker.Worker, ("id", "connection"))):  # type: ignore[misc]
    """A worker for blocking code. Its handler is best a plain function, which runs in a thread."""

    def run(self, *, signals: bool = True) -> None:
        """Works until `stop` is called from another thread or, in the main thread, SIGTERM or SIGINT arrives."""
        with _forwarded_signals(lambda: portal.soon(self.inner.interrupt)) if signals else nullcontext():
            portal.run(self.inner.run(signals=False))

    def run_until_idle(self, timeout: Seconds | None = None, *, signals: bool = True) -> int:
        """Works until no job is ready in any of the queues and none runs. As `jobwire.Worker.run_until_idle`."""
        with _forwarded_signals(lambda: portal.soon(self.inner.interrupt)) if signals else nullcontext():
            return portal.run(self.inner.run_until_idle(timeout, signals=False))

    @functools.wraps(_worker.Worker.pause)
    def pause(self, *, wait: bool = True, queue: str | None = None) -> None:
        if wait is True and self.inner.runs_here:
            raise waits_for_itself()
        portal.run(self.inner.pause(wait=wait, queue=queue))


@contextmanager
def _forwarded_signals(on_signal: Callable[[], None]) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def forward(number: int, frame: object) -> None:
        on_signal()

    before = {number: signal.signal(number, forward) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def connect(url: str | None = None, *, client: object | None = None, wait_for_store: Seconds = 0.0) -> Any:
    """A connection to share between blocking queues and workers. The arguments are those of `jobwire.connect`."""
    return Connection(url, client=client, wait_for_store=wait_for_store)


def __getattr__(name: str) -> Any:
    if name in _TASKS:
        from jobwire import sync_tasks  # noqa: PLC0415 - only programs with tasks need it

        return getattr(sync_tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
