"""Ends a worker, whatever the state of its store and its handlers.

Jobs that still run are released if the store takes them, and no handler goes on without a lease. Jobs that could not be
settled are named in the log and recovered when their leases expire. Each step has a time limit, so neither a store that
does not answer nor a handler that ignores its cancellation can keep the worker from ending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from jobwire.connection import Connection
from jobwire.counted import counted
from jobwire.journal import Journal, few
from jobwire.worker.engines import Engines

_EACH_STEP = 3.0
"""Seconds that each step may take: releasing jobs, the end of cancelled handlers, closing a connection."""


async def shut_down(
    engines: Engines, work: asyncio.Task[None], *, connection: Connection | None, journal: Journal
) -> None:
    """Ends everything that a worker has started. `work` is the task of `engines.run`, which may have ended already.
    `connection` is closed if it is given."""
    if not work.done():
        if engines.busy:
            journal.warning("releasing %s unfinished", counted(engines.busy, "running job"))
        engines.hand_back()
        await wait_for_first(work, timeout=_EACH_STEP)
    if unsettled := engines.unsettled():
        journal.error(
            "shutting down without confirmation for %s (%s); recovery follows when the leases expire",
            counted(len(unsettled), "job"), few(unsettled, most=100),
        )  # fmt: skip
    await engines.leave(_EACH_STEP if work.done() else 0.0)
    work.cancel()
    await asyncio.wait([work], timeout=_EACH_STEP + 1.0)
    for runner in engines.runners.values():
        runner.close()
    await _end("the lease keeper", engines.keeper.stop(), journal)
    await asyncio.gather(*(_end("the consumer", consumer.close(), journal) for consumer in engines.consumers.values()))
    if connection is not None:
        await _end("the connection", connection.close(), journal)


async def _end(what: str, ending: Coroutine[Any, Any, None], journal: Journal) -> None:
    try:
        async with asyncio.timeout(_EACH_STEP):
            await ending
    except Exception as error:
        reason = str(error) or type(error).__name__
        journal.warning("could not close %s (%s); the worker ends without that", what, reason)


async def wait_for_first(
    work: asyncio.Task[Any], event: asyncio.Event | None = None, timeout: float | None = None
) -> None:
    """Returns when the work is done, the event is set, or the time is up."""
    waiting: set[asyncio.Task[Any]] = {work}
    is_set = None
    if event is not None:
        is_set = asyncio.create_task(event.wait())
        waiting.add(is_set)
    try:
        await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if is_set is not None:
            is_set.cancel()
