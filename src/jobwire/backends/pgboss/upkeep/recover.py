"""Recovers jobs whose worker has died: their leases are not extended, so their heartbeats expire.

The jobs run again without being charged an attempt, up to `max_stalled` times each. After that they fail. The run that
has stalled is remembered if the worker that recovers its job remembers attempts.
"""

from __future__ import annotations

import math

from jobwire.backends.pgboss.codec import failure_output
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.work.dependents import Dependents
from jobwire.backends.pgboss.work.fence import failing, fence
from jobwire.backends.pgboss.work.settle import failed_parents
from jobwire.boundary import ConsumerSettings

STALLED = "job stalled more than allowable limit"


def lease_of(settings: ConsumerSettings) -> int:
    """Returns a worker's lease in whole seconds, as `heartbeat_seconds` holds it."""
    return max(1, math.ceil(settings.lease))


class Recovery:
    """Recovers jobs of the queues of one store."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues
        self._dependents = Dependents(store, queues)

    @property
    def possible(self) -> bool:
        """True if the schema has heartbeats, and there is side data to count recoveries in."""
        return self._store.has_side and self._store.layout.has("heartbeat_on")

    async def run(self, name: str, max_stalled: int, lease: int, remember: float | None = None) -> list[str]:
        """Recovers up to a thousand jobs of a queue, and fails those that were recovered too often. Remembers stalled
        runs for so many seconds. Returns the ids of both."""
        queue = await self._queues.find(name)
        if queue is None or not self.possible:
            return []
        values = {
            "queue": text(name), "most": number(max_stalled), "lease": number(lease),
            "own_channel": self._store.own_channel,
        }  # fmt: skip
        rows = await self._store.ask("recover", values, table=queue.table)
        stalled = [(job_id, attempt, started) for job_id, back, attempt, started, *_ in rows if back]
        if stalled and remember is not None:
            await self._store.need_side_table("attempt")
            ids, attempts, starts = zip(*stalled, strict=True)
            runs = fence(name, ids, attempts, starts, [None] * len(stalled))
            # The jobs may run again by now: the time is that of the recovery.
            values = {**runs, "at": text(rows[0][4]), "keep": number(remember)}
            await self._store.ask("remember_stalls", values)
        doomed = [(job_id, attempt, started) for job_id, back, attempt, started, *_ in rows if not back]
        if doomed:
            ids, attempts, starts = zip(*doomed, strict=True)
            count, output = len(doomed), failure_output(STALLED, "")
            fail = {
                **fence(name, ids, attempts, starts, [None] * count),
                **failing([output] * count, [True] * count, [None] * count, [1] * count),
            }
            failed = failed_parents(await self._store.ask("fail_or_retry", fail, table=queue.table))
            if failed:
                await self._dependents.first_ended(name, [], failed)
        return [job_id for job_id, *_ in rows]
