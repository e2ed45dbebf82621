"""Stores the progress and the logs of jobs. pg-boss has no columns for them, so they are side data."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, text
from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.backends.pgboss.queues import Queues
from jobwire.boundary import Acted


class PgProgress:
    """Implements Progress."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        if not await _has_side(self._store):
            return Acted.DONE
        row = await self._queues.find(queue)
        if row is None or not is_id(job_id):
            return Acted.NOT_FOUND
        values = {"queue": text(queue), "id": text(job_id), "value": value}
        return _done(await self._store.ask("progress", values, table=row.table))


class PgLogs:
    """Implements Logs."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        if not await _has_side(self._store):
            return Acted.DONE
        row = await self._queues.find(queue)
        if row is None or not is_id(job_id):
            return Acted.NOT_FOUND
        line = line.replace("\x00", "�").encode(errors="replace").decode()
        values = {"queue": text(queue), "id": text(job_id), "line": text(line), "keep": number(keep)}
        return _done(await self._store.ask("log", values, table=row.table))

    async def logs(self, queue: str, job_id: str, last: int = 0) -> list[str]:
        if not is_id(job_id) or not await self._store.find_side():
            return []
        values = {"queue": text(queue), "id": text(job_id), "last": number(last)}
        return [line for (line,) in await self._store.ask("logs", values)][::-1]


async def _has_side(store: Store) -> bool:
    """Returns True if there are tables for progress and logs. If the role may not create them, nothing is stored and
    the jobs run all the same: the worker has logged a warning."""
    if store.may_make_side:
        await store.need_side()
    return await store.find_side()


def _done(rows: Sequence[Row]) -> Acted:
    return Acted.DONE if rows else Acted.NOT_FOUND
