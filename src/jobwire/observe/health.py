"""A worker's health, for the endpoints that service managers check."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from jobwire.checks import Seconds, seconds
from jobwire.counted import counted
from jobwire.errors import JobwireError, StoreUnavailable
from jobwire.worker import Worker

_NO_JOB = {"any": "jobwire-health", "uuid": "00000000-0000-0000-0000-000000000000", "objectid": "0" * 24}
"""Ids of jobs that do not exist. To look for one costs the same however many jobs the store has."""


@dataclass(frozen=True, slots=True)
class Health:
    """A worker's state at one moment. `ok` is True if it claims jobs and its store answers. If not, `why` is the
    reason."""

    ok: bool
    why: str
    connected: bool
    answered_in: float | None
    """Seconds that the store took to answer. None if it did not answer."""
    started: bool
    claiming: bool
    paused: bool
    busy: int
    lost: int
    """Outcomes that the store refused because the claim was not valid any more."""


async def health(worker: Worker, *, timeout: Seconds = 2.0) -> Health:
    """Checks the worker and its store, over the worker's own connections. Call it in the worker's event loop.

    The result is for readiness probes. For liveness, it is enough that the call returns. A worker whose store is
    unavailable is not ready, but a restart would only interrupt the jobs that it runs.
    """
    limit = seconds("timeout", timeout, minimum=0.01)
    began = time.monotonic()
    answered_in: float | None = None
    trouble = ""
    try:
        async with asyncio.timeout(limit):
            backend = worker.connection.backend
            await backend.get(worker.queues[0], [_NO_JOB[backend.capabilities.ids]])
        answered_in = time.monotonic() - began
    except TimeoutError:
        trouble = f"the store has not answered within {limit:g} s"
    except StoreUnavailable as error:
        trouble = str(error)
    except JobwireError as error:
        answered_in = time.monotonic() - began
        trouble = str(error)
    started = all(worker.stats_of(queue).calls for queue in worker.queues)
    if not worker.claiming:
        trouble = f"stopping: {counted(worker.busy, 'job', ' is', ' are')} still running"
    elif worker.paused and not trouble:
        trouble = f"paused: {counted(worker.busy, 'job', ' is', ' are')} still running"
    elif not started and not trouble:
        trouble = "the worker has not started"
    return Health(
        ok=not trouble,
        why=trouble,
        connected=answered_in is not None,
        answered_in=answered_in,
        started=started,
        claiming=worker.claiming,
        paused=worker.paused,
        busy=worker.busy,
        lost=worker.stats.lost,
    )
