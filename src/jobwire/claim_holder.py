"""One consumer for claims by hand: its calls to the store, the jobs that callers hold through it, and its duties.

The protocol's duties are done from the first claim until the queue is closed, as by every worker. A program with a
loop of its own may be the only one that claims jobs of its queue. Without these duties the jobs of a program that died
would not be recovered. In some protocols delayed jobs would not become ready either, and claims would be lost for want
of a heartbeat.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, TypeVar

from jobwire.boundary import Backend, Claim, ConsumerSettings, Outcome, Released, Settled, Verdict
from jobwire.claimed import ClaimedJob
from jobwire.counted import counted
from jobwire.deadline import deadline
from jobwire.duties import perform
from jobwire.errors import Closed, StoreUnavailable
from jobwire.journal import Journal, few

Answer = TypeVar("Answer")

_ANSWER_WITHIN = 30.0
_AT_ONCE = 5.0
_RESET = 5.0
"""Seconds that dropping broken connections may take."""
_LAST_CALLS = 3.0
"""Seconds that each step of closing may take."""


class ClaimHolder:
    """Implements Holder for the jobs that it hands out."""

    def __init__(self, backend: Backend, settings: ConsumerSettings) -> None:
        self._backend = backend
        self._queue = settings.queue
        self.consumer = backend.consumer(settings)
        self.journal = Journal(settings.worker_id, settings.queue)
        self._held: set[ClaimedJob] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._duties: list[asyncio.Task[None]] | None = None
        self._first_runs: list[asyncio.Future[None]] = []
        self.closed = False

    def check_open(self) -> None:
        if self.closed:
            raise Closed(f"queue {self._queue!r} has been closed")

    # --- calls ------------------------------------------------------------------------------------------------------

    async def call(
        self, outcomes: Sequence[Outcome], claim: int, on_failure: Callable[[], None] | None = None
    ) -> Settled:
        """Settles the outcomes and claims up to `claim` jobs."""
        return await self._persistently(lambda: self.consumer.settle(outcomes, claim), on_failure)

    async def _persistently(
        self, call: Callable[[], Coroutine[Any, Any, Answer]], on_failure: Callable[[], None] | None = None
    ) -> Answer:
        """Makes the call, and once more if it fails at once. A program may make its calls minutes apart. Connections
        that were closed in between are noticed only when they are used."""
        began = time.monotonic()
        try:
            return await _in_time(call())
        except StoreUnavailable:
            if on_failure is not None:
                on_failure()
            if time.monotonic() - began > _AT_ONCE:
                raise
        await self.reset()
        return await _in_time(call())

    async def give_back(self, outcomes: Sequence[Outcome]) -> None:
        """Settles jobs that no caller holds. A failure is logged and not raised, since the jobs are recovered later."""
        try:
            await self.call(outcomes, 0)
        except Exception as error:
            ids = [outcome.claim.job.id for outcome in outcomes]
            self.journal.warning(
                "could not give back %s (%s): %s; recovery follows when the leases expire",
                counted(len(ids), "job"), few(ids, most=100), _reason(error),
            )  # fmt: skip

    async def reset(self) -> None:
        """Drops the connections after a call that failed."""
        with contextlib.suppress(Exception):  # the dropped connections are broken anyway
            async with asyncio.timeout(_RESET):
                await self.consumer.reset()

    # --- jobs in the hands of callers -------------------------------------------------------------------------------

    def hold(self, claim: Claim) -> ClaimedJob:
        job = ClaimedJob(claim, self._backend, self)
        self._held.add(job)
        return job

    def let_go(self, job: ClaimedJob) -> None:
        self._held.discard(job)

    async def settle(self, outcome: Outcome, on_failure: Callable[[], None]) -> Verdict:
        return (await self.call([outcome], 0, on_failure)).verdicts[0]

    async def extend(self, claim: Claim) -> bool:
        return not await self._persistently(lambda: self.consumer.extend([claim]))

    async def to_its_end(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        return await asyncio.shield(self._begin(call))

    def give_up(self, job: ClaimedJob) -> None:
        """Releases a job whose caller was cancelled when it was about to get it."""
        self._begin(job.release())

    def trouble(self, job: ClaimedJob, error: BaseException) -> None:
        self.journal.warning(
            "could not settle job %s (%s); it is recovered when its lease expires",
            job.id,
            _reason(error),
            extra={"job": job.id},
        )

    def _begin(self, call: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the caller gets it, unless it was cancelled

    # --- duties -----------------------------------------------------------------------------------------------------

    def begin_duties(self) -> None:
        """Starts the protocol's duties. Called after the first call to the store, which some of them need."""
        if self._duties is not None or self.closed:
            return
        self._duties = []
        for duty in self.consumer.duties():
            first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._first_runs.append(first)
            on_run = _setter(first)
            self._duties.append(asyncio.create_task(perform(duty, self.journal, _ANSWER_WITHIN, on_run)))

    async def first_duties(self, within: float) -> bool:
        """Waits for the first run of the duties. Returns False if an earlier call has waited for it."""
        runs, self._first_runs = self._first_runs, []
        if runs:
            await asyncio.wait(runs, timeout=within)
        return bool(runs)

    # --- the end ----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Releases the jobs that callers hold, after the calls that are under way. Each step has a time limit, so that
        a store that does not answer can't keep the queue from closing."""
        self.closed = True
        await _ended_within(self._calls)
        if self._held:
            held = list(self._held)
            self.journal.warning(
                "the queue is closed with %s (%s); releasing", counted(len(held), "unsettled job"),
                few([job.id for job in held], most=100),
            )  # fmt: skip
            for job in held:
                job.end("was released when its queue was closed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_CALLS):
                    await self.give_back([Released(job.claim) for job in held])
        for task in (*self._calls, *(self._duties or ())):
            task.cancel()
        await _ended_within((*self._calls, *(self._duties or ())))
        with contextlib.suppress(Exception):  # its connections are closed with the backend
            async with asyncio.timeout(_LAST_CALLS):
                await self.consumer.close()


async def _in_time(call: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        async with deadline(_ANSWER_WITHIN):
            return await call
    except TimeoutError as late:
        raise StoreUnavailable(f"the store gave no answer within {_ANSWER_WITHIN:g} s") from late


async def _ended_within(tasks: Collection[asyncio.Task[Any]]) -> None:
    if tasks:
        await asyncio.wait(list(tasks), timeout=_LAST_CALLS)


def _setter(future: asyncio.Future[None]) -> Callable[[int, int], None]:
    def on_run(recovered: int, missed: int) -> None:
        if not future.done():
            future.set_result(None)

    return on_run


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
