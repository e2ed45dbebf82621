"""Waits for jobs to finish, with one reader of events per queue for any number of callers."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from jobwire.boundary import Backend, Events
from jobwire.errors import JobFailed, JobNotFound, WaitTimeout
from jobwire.model import Event, EventKind, Job, State

_ENDS = (EventKind.COMPLETED, EventKind.FAILED, EventKind.CANCELLED, EventKind.REMOVED)
_POLL_FIRST = 0.02
_POLL_LAST = 1.0
_LATE_EVENT = 1.0
"""Seconds that the event of a job that is no longer stored may take to arrive."""


class ResultWaits:
    """Returns results of jobs as they finish. Reads the event stream if the protocol has one, else polls."""

    def __init__(self, backend: Backend, queue: str) -> None:
        self._backend = backend
        self._queue = queue
        self._waiting: dict[str, list[asyncio.Future[Any]]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._read_to = ""
        self._starting = asyncio.Lock()

    async def wait(self, job_id: str, timeout: float | None) -> Any:
        """Returns the result of the job. Raises JobFailed with its error, JobNotFound if it is gone, or WaitTimeout."""
        try:
            async with asyncio.timeout(timeout):
                if self._backend.events is not None:
                    return await self._by_event(job_id, self._backend.events)
                return await self._by_polling(job_id)
        except TimeoutError as late:
            if isinstance(late, WaitTimeout):
                raise
            raise WaitTimeout(f"job {job_id!r} did not finish within {timeout:g} s") from None

    async def _by_event(self, job_id: str, events: Events) -> Any:
        await self._start_reader(events)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, []).append(future)
        try:
            # The reader starts before the job is read, so it gets the event of a job that finishes after that.
            [job] = await self._backend.get(self._queue, [job_id])
            if job is None and not future.done():
                return await self._of_missing(job_id, future, events)
            if job is not None and job.state.finished and not future.done():
                return _result_of(job)
            return await future
        finally:
            waiters = self._waiting.get(job_id, [])
            with contextlib.suppress(ValueError):
                waiters.remove(future)
            if not waiters:
                self._waiting.pop(job_id, None)
            if future.done() and not future.cancelled():
                future.exception()

    async def _of_missing(self, job_id: str, future: asyncio.Future[Any], events: Events) -> Any:
        """Returns the result of a job that is no longer stored, if it finished a moment ago: the event may be on its
        way. Raises JobNotFound otherwise."""
        if await events.cursor(self._queue) != self._read_to:
            await asyncio.wait([future], timeout=_LATE_EVENT)
        if not future.done():
            raise JobNotFound(self._queue, job_id)
        return await future

    async def _by_polling(self, job_id: str) -> Any:
        pause = _POLL_FIRST
        while True:
            [job] = await self._backend.get(self._queue, [job_id])
            if job is None:
                raise JobNotFound(self._queue, job_id)
            if job.state.finished:
                return _result_of(job)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _POLL_LAST)

    async def _start_reader(self, events: Events) -> None:
        async with self._starting:
            if self._reader is None or self._reader.done():
                since = await events.cursor(self._queue)
                self._read_to = since
                self._reader = asyncio.create_task(self._read(events, since))

    async def _read(self, events: Events, since: str) -> None:
        try:
            async for event in events.events(self._queue, since):
                if event.kind in _ENDS and event.job_id in self._waiting:
                    self._deliver(event)
                self._read_to = event.id
        except Exception as error:
            for futures in self._waiting.values():
                for future in futures:
                    if not future.done():
                        future.set_exception(error)

    def _deliver(self, event: Event) -> None:
        assert event.job_id is not None  # noqa: S101 - checked by the caller
        for future in self._waiting.get(event.job_id, ()):
            if future.done():
                continue
            if event.kind is EventKind.COMPLETED:
                future.set_result(event.result)
            elif event.kind in (EventKind.FAILED, EventKind.CANCELLED):
                future.set_exception(JobFailed(event.error or f"job {event.job_id!r} is {event.kind}"))
            else:
                future.set_exception(JobNotFound(self._queue, event.job_id))

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])


def _result_of(job: Job) -> Any:
    if job.state is State.COMPLETED:
        return job.result
    raise JobFailed(job.error or f"job {job.id!r} is {job.state.value}")
