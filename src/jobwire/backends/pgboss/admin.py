"""What an operator does to jobs and to a queue as a whole, and what a running job tells about itself."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backend import Acted
from jobwire.backends.pgboss.failure import UNIQUE_VIOLATION, Refused
from jobwire.backends.pgboss.ids import is_id
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.rows import Row
from jobwire.backends.pgboss.schema import own_channel
from jobwire.backends.pgboss.store import Store
from jobwire.backends.pgboss.values import flag, number, plain_list, text
from jobwire.errors import InvalidOption, WrongState
from jobwire.model import State

_CLEANED = {
    State.WAITING: ("page_waiting",),
    State.DELAYED: ("page_delayed",),
    State.COMPLETED: ("page_completed", "page_finished"),
    State.FAILED: ("page_failed", "page_finished"),
    State.CANCELLED: ("page_cancelled", "page_finished"),
}


class Admin:
    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues
        self._own_bell = text(own_channel(store.name))

    async def act(self, action: str, name: str, job_ids: Sequence[str]) -> list[Acted]:
        """retry, resume, promote, cancel or remove jobs; what each came to."""
        queue = await self._queues.find(name)
        ids = [job_id for job_id in job_ids if is_id(job_id)]
        if queue is None or not ids:
            return [Acted.NOT_FOUND] * len(job_ids)
        values = {"queue": text(name), "ids": plain_list(ids), "own_bell": self._own_bell}
        try:
            rows = await self._store.ask(action, values, table=queue.table)
        except Refused as error:
            if error.sqlstate != UNIQUE_VIOLATION:
                raise
            # The queue's policy has no room for one of them; alone, the others may find theirs.
            if len(ids) == 1:
                return [Acted.WRONG_STATE if job_id in ids else Acted.NOT_FOUND for job_id in job_ids]
            return [acted for job_id in job_ids for acted in await self.act(action, name, [job_id])]
        found = {row[0]: row for row in rows}
        return [_acted(action, found.get(job_id.lower())) for job_id in job_ids]

    async def drain(self, name: str, delayed: bool) -> None:
        queue = await self._queues.find(name)
        if queue is not None:
            features = ("delayed_too",) if delayed else ()
            await self._store.ask("drain", {"queue": text(name)}, table=queue.table, features=features)

    async def clean(self, name: str, state: State, older_than: float, limit: int) -> list[str]:
        queue = await self._queues.find(name)
        features = _CLEANED.get(state)
        if features is None:
            raise InvalidOption("state", state.value, f"must be one of {', '.join(_CLEANED)}")
        if queue is None:
            return []
        values = {"queue": text(name), "age": number(older_than), "limit": number(limit)}
        return [row[0] for row in await self._store.ask("clean", values, table=queue.table, features=features)]

    async def obliterate(self, name: str, force: bool) -> None:
        queue = await self._queues.find(name)
        if queue is None:
            return
        values = {"queue": text(name), "force": flag(force)}
        [(active,)] = await self._store.ask("obliterate", values, table=queue.table)
        if active and not force:
            raise WrongState(f"queue {name!r} has {active} active jobs; force=True deletes them too")

    # --- what pg-boss has no place for ------------------------------------------------------------------------------

    async def pause(self, name: str) -> None:
        await self._store.need_side()
        await self._store.ask("hold", {"queue": text(name)})

    async def resume(self, name: str) -> None:
        if await self.paused(name):
            await self._store.ask("unhold", {"queue": text(name), "own_bell": self._own_bell})

    async def paused(self, name: str) -> bool:
        return await self._side_is_there() and bool(await self._store.ask("is_held", {"queue": text(name)}))

    async def update_progress(self, name: str, job_id: str, value: bytes) -> Acted:
        if not await self._has_side():
            return Acted.DONE
        queue = await self._queues.find(name)
        if queue is None or not is_id(job_id):
            return Acted.NOT_FOUND
        values = {"queue": text(name), "id": text(job_id), "value": value}
        return _done(await self._store.ask("progress", values, table=queue.table))

    async def log(self, name: str, job_id: str, line: str, keep: int) -> Acted:
        if not await self._has_side():
            return Acted.DONE
        queue = await self._queues.find(name)
        if queue is None or not is_id(job_id):
            return Acted.NOT_FOUND
        line = line.replace("\x00", "�").encode(errors="replace").decode()
        values = {"queue": text(name), "id": text(job_id), "line": text(line), "keep": number(keep)}
        return _done(await self._store.ask("log", values, table=queue.table))

    async def logs(self, name: str, job_id: str) -> list[str]:
        if not is_id(job_id) or not await self._side_is_there():
            return []
        return [row[0] for row in await self._store.ask("logs", {"queue": text(name), "id": text(job_id)})]

    async def _has_side(self) -> bool:
        """Whether there is a place for progress and logs. Where the role may not make it they are not kept, as the
        worker has warned, and jobs go on."""
        if self._store.may_make_side:
            await self._store.need_side()
        return await self._side_is_there()

    async def _side_is_there(self) -> bool:
        return await self._store.find_side()


def _done(rows: Sequence[Row]) -> Acted:
    return Acted.DONE if rows else Acted.NOT_FOUND


def _acted(action: str, row: Row | None) -> Acted:
    if row is None:
        return Acted.NOT_FOUND
    if row[2]:
        return Acted.DONE
    return Acted.LOCKED if action == "remove" else Acted.WRONG_STATE
