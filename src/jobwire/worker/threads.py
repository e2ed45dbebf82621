"""Threads for handlers that are plain functions.

Python can't stop a thread that runs longer than its job's timeout. It is abandoned: a new thread replaces it, and its
result is dropped.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from jobwire.errors import shown
from jobwire.forking import leave_if_forked
from jobwire.journal import fields_of
from jobwire.worker.handler_tasks import maker

logger = logging.getLogger("jobwire.worker")

Work = Callable[[], Any]

_here = threading.local()
"""Its `owner` is the Threads that the running thread belongs to, if any."""


class _Thread:
    """A daemon thread that runs one piece of work at a time."""

    def __init__(self, name: str, owner: Threads) -> None:
        self._owner = owner
        self._inbox: queue.SimpleQueue[tuple[Work, asyncio.Future[Any], asyncio.AbstractEventLoop] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self.name = name

    def put(self, work: Work, future: asyncio.Future[Any]) -> None:
        self._inbox.put((work, future, future.get_loop()))

    def end(self) -> None:
        self._inbox.put(None)

    def _run(self) -> None:
        _here.owner = self._owner
        process = os.getpid()
        while (item := self._inbox.get()) is not None:
            work, future, loop = item
            result: Any = None
            error: BaseException | None = None
            try:
                result = work()
            except BaseException as raised:
                error = raised
            leave_if_forked(process, "a handler")
            try:
                loop.call_soon_threadsafe(_deliver, future, result, error)
            except RuntimeError:
                return  # the loop is closed, and with it the worker
            del work, future, loop, result, error, item


def _deliver(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif issubclass(type(error), (StopIteration, GeneratorExit)):  # isinstance would ask the exception for its class
        future.set_exception(RuntimeError(f"the handler raised {shown(error)}"))  # a future refuses this error itself
    else:
        future.set_exception(error)


class Threads:
    """Threads: as many as are busy at once. They are kept for the next job."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[_Thread] = []
        self._made = 0

    async def call(self, work: Work) -> Any:
        """Runs the work in a thread. If the call is cancelled, the thread is abandoned."""
        thread = self._idle.pop() if self._idle else self._new()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        context = contextvars.copy_context()
        thread.put(lambda: context.run(work), future)
        try:
            return await future
        finally:
            # If the thread has set the future, it is idle. If the future was cancelled, the thread is still at work,
            # and ends when it finds this in its inbox.
            if future.cancelled():
                thread.end()
                run = maker.get()
                logger.warning(
                    "abandoned thread %s: its handler still runs, its result will be dropped",
                    thread.name, extra={} if run is None else fields_of(run.claim, final=False),
                )  # fmt: skip
            else:
                self._idle.append(thread)

    def runs_here(self) -> bool:
        """Returns True if the calling thread is one of these."""
        return getattr(_here, "owner", None) is self

    def _new(self) -> _Thread:
        self._made += 1
        return _Thread(f"{self._name}-{self._made}", self)

    def close(self) -> None:
        for thread in self._idle:
            thread.end()
        self._idle.clear()
