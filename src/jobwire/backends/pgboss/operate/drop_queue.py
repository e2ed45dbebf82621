"""Deletes a queue. If it has a table of its own, this locks all job tables exclusively for a moment."""

from __future__ import annotations

import asyncio
import random

from jobwire.backends.pgboss.connection.errors import sqlstate_of
from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.statements import statement
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import text
from jobwire.backends.pgboss.queues import Queues
from jobwire.errors import JobwireError, WrongState

_LOCK_NOT_AVAILABLE = "55P03"
_TRIES = 12
_FIRST, _LONGEST = 0.025, 0.4


async def drop_queue(store: Store, queues: Queues, name: str) -> None:
    """Deletes the queue with its jobs, schedules and subscriptions. Raises WrongState if another queue, or a job there,
    has it as its dead letter queue."""
    queue = await queues.reread(name)
    if queue is None:
        return
    sources = await store.ask("dead_letter_sources", {"queue": text(name)})
    if sources:
        names = ", ".join(sorted(source for (source,) in sources))
        raise WrongState(f"queue {name!r} can't be deleted: it is the dead letter queue of {names}")
    lock = {"lock": await queues.lock("delete-queue")}
    calls: list[Call] = [(store.statements.get("lock"), lock)]
    if queue.partition:
        tables = ", ".join(store.layout.table(table) for table in ("job_common", queue.table, "job"))
        calls.append((statement("lock_tables", f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE NOWAIT"), {}))
        if store.layout.has("bam"):
            calls.append((store.statements.get("forget_bam"), {"table": text(queue.table)}))
    calls.append((store.statements.get("delete_queue"), {"queue": text(name)}))
    for tried in range(1, _TRIES + 1):
        try:
            # Waiting for one table while others are locked would stop every client. So a lock that is not free fails at
            # once, and all of them are tried again.
            await store.run(calls)
            break
        except JobwireError as error:
            if sqlstate_of(error) != _LOCK_NOT_AVAILABLE or tried == _TRIES:
                raise
        await asyncio.sleep(min(_FIRST * 2**tried, _LONGEST) * random.uniform(0.5, 1))
    queues.forget(name)
