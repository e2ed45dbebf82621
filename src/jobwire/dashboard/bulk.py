"""Actions on all jobs that match filters, in the background: however many there are, with their progress.

The jobs are read page by page and changed in steps, so that little is in memory. Only jobs that were in their state
before the action began are changed: one that fails again meanwhile is not retried for a second time. What has been done
stays done if the action ends on the way, and the same action can be begun again for the rest.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from starlette.exceptions import HTTPException

from jobwire.boundary import Acted
from jobwire.dashboard.actions import STEP, STEP_WITHIN, Act, described, record, refusals
from jobwire.dashboard.redaction import Redaction
from jobwire.dashboard.selection import Selection, for_a_list
from jobwire.dashboard.store import Store
from jobwire.errors import JobwireError
from jobwire.job_filters import since_when
from jobwire.model import Job
from jobwire.queue import Queue
from jobwire.redact import redact as without_passwords
from jobwire.serving.tokens import Caller

_PAGE = 250
MOST_RUNNING = 20
"""Actions that run at the same time."""
MOST_KEPT = 100
"""Actions that are remembered."""


@dataclass(slots=True)
class BulkAct:
    """One action on all jobs that match, under way or ended."""

    act: Act
    store: str
    queue: str
    chosen: Selection
    caller: Caller
    expected: int
    """The number of jobs in the state when it began."""
    key: str = field(default_factory=lambda: secrets.token_urlsafe(9))
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    looked_at: int = 0
    answers: Counter[Acted] = field(default_factory=Counter[Acted])
    ended: str = ""
    """Empty while it is under way, then how it ended."""
    took: float = 0.0

    @property
    def done(self) -> int:
        return self.answers[Acted.DONE]

    @property
    def refused(self) -> dict[Acted, int]:
        return {answer: number for answer, number in self.answers.items() if answer is not Acted.DONE and number}


class Bulk:
    """The actions of one dashboard."""

    def __init__(self) -> None:
        self._acts: dict[str, BulkAct] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def of_queue(self, store: str, queue: str) -> Iterator[BulkAct]:
        """Yields the actions on a queue that are known, the newest first."""
        return (one for one in reversed(self._acts.values()) if (one.store, one.queue) == (store, queue))

    def start(self, one: BulkAct, store: Store, redaction: Redaction) -> None:
        """Begins the action. Raises HTTPException 409 if the same person has one under way on this queue."""
        running = [other for other in self._acts.values() if not other.ended]
        if any(
            (other.caller.name, other.store, other.queue) == (one.caller.name, one.store, one.queue)
            for other in running
        ):
            raise HTTPException(409, "Your last action on this queue is still under way. Wait until it has ended.")
        if len(running) >= MOST_RUNNING:
            raise HTTPException(409, f"{MOST_RUNNING} actions on many jobs are under way. Wait until one has ended.")
        for old in [other.key for other in self._acts.values() if other.ended][
            : max(0, len(self._acts) - MOST_KEPT + 1)
        ]:
            del self._acts[old]
        self._acts[one.key] = one
        task = asyncio.create_task(_run(one, store, redaction), name=f"jobwire dashboard {one.act.verb} {one.queue}")
        self._tasks[one.key] = task
        task.add_done_callback(lambda _: self._tasks.pop(one.key, None))

    async def close(self) -> None:
        """Stops what is under way after its step."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _run(one: BulkAct, store: Store, redaction: Redaction) -> None:
    where = f"store {one.store!r}, queue {one.queue!r}"
    given = described({name: value for name, value in one.chosen.given.items() if value})
    record(one.caller, one.act.verb, where, f"begins for all jobs with {given}")
    began = time.monotonic()
    ended = "stopped with the dashboard"
    try:
        async with Queue(one.queue, store.connection) as queue:
            await _act_on_all(one, queue, redaction)
        ended = "done"
    except TimeoutError:
        ended = f"failed on the way: no answer within {STEP_WITHIN:g} s"
    except (JobwireError, OSError) as error:
        ended = f"failed on the way: {without_passwords(str(error))}"
    finally:
        one.took = time.monotonic() - began
        one.ended = ended
        store.outdate()
        record(one.caller, one.act.verb, where, f"{one.done} jobs {one.act.past}{refusals(one.answers)}; {ended}")


async def _act_on_all(one: BulkAct, queue: Queue, redaction: Redaction) -> None:
    step: list[str] = []
    async with aclosing(_jobs(queue, one.chosen)) as jobs:
        while (job := await _next(jobs)) is not None:
            one.looked_at += 1
            if _chosen(one, job, redaction):
                step.append(job.id)
            if len(step) >= STEP:
                await _do(one, queue, step)
                step = []
    await _do(one, queue, step)


def _chosen(one: BulkAct, job: Job, redaction: Redaction) -> bool:
    since = since_when(job)
    is_older = since is None or since <= one.began
    return is_older and (not one.chosen or one.chosen.match(for_a_list(job, redaction)))


async def _jobs(queue: Queue, chosen: Selection) -> AsyncGenerator[Job]:
    async for job in queue.iter_jobs(chosen.state, page_size=_PAGE):
        yield job


async def _next(jobs: AsyncIterator[Job]) -> Job | None:
    async with asyncio.timeout(STEP_WITHIN):
        return await anext(jobs, None)


async def _do(one: BulkAct, queue: Queue, ids: list[str]) -> None:
    if ids:
        async with asyncio.timeout(STEP_WITHIN):
            one.answers.update(await one.act.run(queue, ids))
