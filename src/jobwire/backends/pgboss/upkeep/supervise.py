"""Monitors and cleans queues, in turns that are shared with Node's supervisors.

A turn is claimed in the database, and the supervisor that claims it does the whole of it. One pass monitors the queues
that are due: it counts their jobs, fails those that ran too long or whose heartbeats stopped, and warns of a backlog.
Then it cleans the queues that are due for that: it deletes jobs that have been kept long enough.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from jobwire.backends.pgboss.connection.pipelined import Value
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text, text_list
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.upkeep.recover import Recovery
from jobwire.backends.pgboss.work.fence import failing, fence
from jobwire.backends.pgboss.worker_options import WorkerOptions
from jobwire.counted import counted

_log = logging.getLogger("jobwire.pgboss")

_CHUNK = 100
_SWEPT = 1000
_DELETED = 10_000
TIMED_OUT = b'{"value":{"message":"job timed out"}}'
NO_HEARTBEAT = b'{"value":{"message":"job heartbeat timeout"}}'


class _Overdue(NamedTuple):
    """A row of `overdue.sql`: an active job that ran too long or whose heartbeats stopped."""

    queue: str
    id: str
    attempt: int
    started: str
    heartbeat: int | None
    reserve: int
    silent: bool


class Supervision:
    """Runs the passes of one store."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues
        self.recovery = Recovery(store, queues)

    async def run(self, options: WorkerOptions, max_stalled: int = 1, lease: int = 30) -> str:
        """Makes one pass. Returns a text for the log, empty if there was nothing to do."""
        monitored = await self._monitor(options, max_stalled, lease)
        deleted = await self._maintain(options)
        words: list[str] = []
        if monitored:
            words.append(
                f"failed or recovered {counted(monitored, 'job')} that ran too long or whose heartbeats stopped"
            )
        if deleted:
            words.append(f"deleted {counted(deleted, 'job')} that had been kept long enough")
        return "; ".join(words)

    # --- monitoring -------------------------------------------------------------------------------------------------

    async def _monitor(self, options: WorkerOptions, max_stalled: int, lease: int) -> int:
        turn = await self._store.ask("monitor_claim", {"every": number(options.monitorIntervalSeconds)})
        failed = 0
        for table, names in _by_table(turn):
            if not await self._count(table, names, options):
                await self._store.ask("monitor_release", {"names": text_list(names)})
            failed += await self._sweep(table, names, max_stalled, lease, options.rememberAttempts)
        return failed

    async def _count(self, table: str, names: Sequence[str], options: WorkerOptions) -> bool:
        """Counts the jobs of the queues. Returns False if that was left out: it took too long lately, or another
        supervisor does it."""
        values = {"names": text_list(names), "lock": await self._queues.lock("queue-stats")}
        began = time.monotonic()
        rows = await self._store.ask("count_queues", values, table=table)
        took = time.monotonic() - began
        if self._store.layout.has("version.monitor_backoff_on") and took > 1:
            await self._store.ask("backoff", {"took": number(took)})
        for name, queued, limit in rows:
            if queued > (limit or options.warningQueueSize):
                await self._warn_of_backlog(name, queued, limit or options.warningQueueSize, options.persistWarnings)
        return bool(rows)

    async def _warn_of_backlog(self, name: str, queued: int, limit: int, keep: bool) -> None:
        _log.warning("queue %r has a backlog of %s, more than %d", name, counted(queued, "job"), limit)
        if keep and self._store.layout.has("warning"):
            data = {"name": name, "queuedCount": queued, "warningQueueSize": limit}
            message = f"queue {name} has {counted(queued, 'queued job')}, more than {limit:,}"
            values = {"type": text("queue_backlog"), "message": text(message), "data": orjson.dumps(data)}
            await self._store.ask("warn", values)

    async def _sweep(
        self, table: str, names: Sequence[str], max_stalled: int, lease: int, remember: float | None
    ) -> int:
        """Fails jobs that ran too long, each only if it is still in the attempt that was read. Recovers jobs of dead
        workers. Returns the number of both."""
        failed = 0
        while True:
            values = {"names": text_list(names), "lease": number(lease)}
            rows = await self._store.ask("overdue", values, table=table)
            by_queue: defaultdict[str, list[_Overdue]] = defaultdict(list)
            for one in map(_Overdue._make, rows):
                by_queue[one.queue].append(one)
            swept = 0
            for name, overdue in by_queue.items():
                ended = overdue
                if self.recovery.possible and any(one.silent for one in overdue):
                    swept += len(await self.recovery.run(name, max_stalled, lease, remember))
                    ended = [one for one in overdue if not one.silent]
                if ended:
                    swept += len(await self._store.ask("fail_or_retry", _failing(name, ended), table=table))
            failed += swept
            if len(rows) < _SWEPT or not swept:
                return failed

    # --- cleaning ---------------------------------------------------------------------------------------------------

    async def _maintain(self, options: WorkerOptions) -> int:
        turn = await self._store.ask("maintain_claim", {"every": number(options.maintenanceIntervalSeconds)})
        deleted = 0
        for name, table in turn:
            values: dict[str, Value] = {"queue": text(name)}
            while True:
                [(gone,)] = await self._store.ask("delete_old", values, table=table)
                deleted += gone
                if gone < _DELETED:
                    break
            if self._store.layout.has("queue.retained_count"):
                await self._store.ask("retained", values, table=table)
            if self._store.layout.has("job_dependency"):
                await self._store.ask("orphans", values)
            if self._store.has_side:
                await self._store.ask("side_orphans", values, table=table)
                if options.rememberAttempts is not None:
                    await self._store.ask("forget_attempts", values)
        return deleted

    # --- flows ------------------------------------------------------------------------------------------------------

    async def unblock(self, every: float, *, force: bool = False) -> None:
        """Makes jobs ready whose parents have completed, if it is time for that and no other supervisor has claimed
        it."""
        if not force and not await self._store.ask("flow_claim", {"every": number(every)}):
            return
        while True:
            [(parents, _)] = await self._store.ask("unblock", {"own_channel": self._store.own_channel})
            if parents < _SWEPT:
                return


def _by_table(turn: Sequence[Row]) -> list[tuple[str, list[str]]]:
    tables: defaultdict[str, list[str]] = defaultdict(list)
    for name, table in turn:
        tables[table].append(name)
    return [
        (table, names[start : start + _CHUNK])
        for table, names in tables.items()
        for start in range(0, len(names), _CHUNK)
    ]


def _failing(name: str, overdue: Sequence[_Overdue]) -> dict[str, Value]:
    _, ids, attempts, starts, heartbeats, reserves, silent = zip(*overdue, strict=True)
    outputs = [NO_HEARTBEAT if one else TIMED_OUT for one in silent]
    count = len(overdue)
    return {
        **fence(name, ids, attempts, starts, heartbeats),
        **failing(outputs, [False] * count, [None] * count, reserves),
    }
