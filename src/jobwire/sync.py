"""jobwire for blocking code: the names of `jobwire`, without async.

    from jobwire.sync import Queue

    with Queue("emails", "bullmq+redis://127.0.0.1:6379/0") as queue:
        job = queue.add({"to": "a@example.com"})
        print(job.wait(timeout=30))

Nothing is written twice: each class here is made from the asynchronous one, whose coroutines run in one event loop in
a background thread, the portal. The stub beside this file is made the same way, so editors and type checkers see it.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from datetime import timedelta
from types import TracebackType
from typing import Any, Never, Self, cast

from jobwire import claimed as _claimed
from jobwire import connection as _connection
from jobwire import flow as _flow
from jobwire import forking
from jobwire import model as _model
from jobwire import queue as _queue
from jobwire import queue_admin as _queue_admin
from jobwire import worker as _worker
from jobwire.checks import Seconds
from jobwire.paging import job_pages
from jobwire.preparing import AddedJobs

__all__ = ["ClaimedJob", "Connection", "Flow", "Job", "JobTree", "Page", "Queue", "QueueAdmin", "Worker", "connect"]


_LONGEST_CALLBACK, _LONGEST_FORK = 2.0, 10.0
"""Seconds that a fork waits for the portal to stand still, and the portal for the end of the fork."""


class Portal:
    """An event loop in a thread, started when first needed, for blocking callers to run coroutines in."""

    def __init__(self) -> None:
        self._start_over()
        forking.follow(self, Portal._start_over)
        os.register_at_fork(before=self._stand_still, after_in_parent=self._go_on)
        atexit.register(self._stop)

    def _start_over(self) -> None:
        """Makes everything new, also in a forked child: it has no loop thread, and locks in it may stay locked."""
        self.life = object()
        """Another one in each forked child."""
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._held: dict[int, threading.Event] = {}

    def _stand_still(self) -> None:
        """Keeps the loop between two callbacks while a thread forks. Inside of one it may be importing a module, and
        the lock of that import would be held in the child for good."""
        if self._loop is None or threading.current_thread() is self._thread:
            return
        stands, go_on = threading.Event(), self._held.setdefault(threading.get_ident(), threading.Event())

        def stand() -> None:
            stands.set()
            go_on.wait(_LONGEST_FORK)

        self._loop.call_soon_threadsafe(stand)
        stands.wait(_LONGEST_CALLBACK)

    def _go_on(self) -> None:
        if (held := self._held.pop(threading.get_ident(), None)) is not None:
            held.set()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine and returns its result. Interrupting the caller cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._running_loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], Any]) -> Any:
        """Runs a plain function in the loop's thread, where asyncio objects belong."""

        async def inside() -> Any:
            return function()

        return self.run(inside())

    def soon(self, function: Callable[[], None]) -> None:
        """Lets the loop run a plain function, without waiting for it."""
        self._running_loop().call_soon_threadsafe(function)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        forking.notice()
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="jobwire-sync", daemon=True)
                self._thread.start()
            return self._loop

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


_portal = Portal()


class Job(_model.Job):
    """A job snapshot whose `wait` blocks."""

    __slots__ = ()

    def wait(self, timeout: float | timedelta | None = None) -> Any:  # type: ignore[override]
        return _portal.run(super().wait(timeout))


class Page(list[Job]):
    """Jobs of one call, and the cursor that continues after them."""

    def __init__(self, page: _model.Page) -> None:
        super().__init__(_blocking(job) for job in page)
        self.cursor = page.cursor


class JobTree(_model.JobTree):
    """A tree of job snapshots whose `wait` blocks."""

    __slots__ = ()


def _blocking(value: Any) -> Any:
    """Returns the result of an asynchronous call in its blocking form."""
    if isinstance(value, _model.Page):
        return Page(value)
    if isinstance(value, _model.Job):
        return Job(*(getattr(value, field.name) for field in fields(value)))
    if isinstance(value, _model.JobTree):
        return JobTree(_blocking(value.job), tuple(_blocking(child) for child in value.children))
    if isinstance(value, _claimed.ClaimedJob):
        return ClaimedJob(value)
    if isinstance(value, (list, AddedJobs)):
        return [_blocking(item) for item in cast("Iterable[Any]", value)]
    return value


class _Blocking:
    """The base of the generated classes: they hold the asynchronous object and live in a `with` block."""

    _made_from: type[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = [argument.inner if isinstance(argument, _Blocking) else argument for argument in args]
        named = {key: value.inner if isinstance(value, _Blocking) else value for key, value in kwargs.items()}
        self.inner = _portal.call(lambda: self._made_from(*given, **named))

    def __enter__(self) -> Self:
        _portal.run(self.inner.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _portal.run(self.inner.__aexit__(kind, error, trace))

    def __repr__(self) -> str:
        return repr(self.inner)


def _method(function: Any) -> Any:
    @functools.wraps(function)
    def call(self: _Blocking, *args: Any, **kwargs: Any) -> Any:
        result = _portal.run(function(self.inner, *args, **kwargs))
        return self if result is self.inner else _blocking(result)

    return call


def _plain_method(function: Any) -> Any:
    @functools.wraps(function)
    def call(self: _Blocking, *args: Any, **kwargs: Any) -> Any:
        return _portal.call(lambda: function(self.inner, *args, **kwargs))

    return call


def _iterator(function: Any) -> Any:
    @functools.wraps(function)
    def iterate(self: _Blocking, *args: Any, **kwargs: Any) -> Iterator[Any]:
        life, source = _portal.life, function(self.inner, *args, **kwargs)
        try:
            while True:
                if life is not _portal.life:
                    raise RuntimeError("a forked process can't go on with its parent's iterator: make a new one")
                try:
                    yield _blocking(_portal.run(_next(source)))
                except StopAsyncIteration:
                    return
        finally:
            if life is _portal.life:
                _portal.run(source.aclose())
            else:
                forking.keep(source)

    return iterate


async def _next(source: AsyncIterator[Any]) -> Any:
    return await anext(source)


def _attribute(name: str) -> property:
    def read(self: _Blocking) -> Any:
        value = getattr(self.inner, name)
        return _blocking(value) if isinstance(value, _model.Job) else value

    return property(read)


def _make(made_from: type[Any], attributes: tuple[str, ...] = ()) -> type[Any]:
    """The blocking class of an asynchronous one: every public coroutine blocks, every async iterator is a plain one,
    and plain methods run in the event loop's thread."""
    body: dict[str, Any] = {"_made_from": made_from, "__doc__": made_from.__doc__, "__module__": __name__}
    members = [item for part in reversed(made_from.__mro__) for item in vars(part).items()]
    for name, member in members:
        if name.startswith("_"):
            continue
        if inspect.isasyncgenfunction(member):
            body[name] = _iterator(member)
        elif inspect.iscoroutinefunction(member):
            body[name] = _method(member)
        elif inspect.isfunction(member):
            body[name] = _plain_method(member)
        elif isinstance(member, property):
            body[name] = _attribute(name)
    body.update({name: _attribute(name) for name in attributes})
    return type(made_from.__name__, (_Blocking,), body)


Connection = _make(_connection.Connection, ("address", "backend"))
Flow = _make(_flow.Flow, ("connection",))


class QueueAdmin(_make(_queue_admin.QueueAdmin)):  # type: ignore[misc]
    """Operators' half of a queue, `queue.admin`, whose calls block."""

    def __init__(self, inner: _queue_admin.QueueAdmin) -> None:
        self.inner = inner


_pages = _iterator(job_pages)


class Queue(_make(_queue.Queue, ("name", "connection"))):  # type: ignore[misc]
    """A queue whose calls block. Its arguments are those of `jobwire.Queue`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _Blocking.__init__(self, *args, **kwargs)
        self.admin = QueueAdmin(self.inner.admin)

    @functools.wraps(_queue.Queue.iter_jobs)
    def iter_jobs(self, *args: Any, **kwargs: Any) -> Iterator[Job]:
        for page in _pages(self, *args, **kwargs):  # the event loop is asked once per page, not once per job
            yield from page

    def __getattr__(self, name: str) -> Never:
        raise _queue_admin.missing_attribute("Queue", name)


class ClaimedJob(_make(_claimed.ClaimedJob)):  # type: ignore[misc]
    """A claimed job whose calls block. `with job:` settles it by how the block ends."""

    def __init__(self, inner: _claimed.ClaimedJob) -> None:
        self.inner = inner


class Worker(_make(_worker.Worker, ("id", "queue", "stats", "connection"))):  # type: ignore[misc]
    """A worker for blocking code. Its handler is best a plain function, which runs in a thread."""

    def run(self, *, signals: bool = True) -> None:
        """Works until `stop` is called from another thread or, in the main thread, SIGTERM or SIGINT arrives."""
        with _forwarded_signals(lambda: _portal.soon(self.inner.interrupt)) if signals else nullcontext():
            _portal.run(self.inner.run(signals=False))


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
