"""Changes jobs and whole queues on behalf of an operator."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.pgboss.connection.errors import UNIQUE_VIOLATION, Refused
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import flag, number, plain_list, text
from jobwire.backends.pgboss.operate.read import PAGES
from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.backends.pgboss.queues import Queues
from jobwire.boundary import Acted
from jobwire.errors import InvalidOption, WrongState
from jobwire.model import State

_CLEANED = (State.WAITING, State.DELAYED, State.COMPLETED, State.FAILED, State.CANCELLED)


class Admin:
    """Acts on jobs by their ids, and on all jobs of a queue. Implements Cancels."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    async def act(self, action: str, name: str, job_ids: Sequence[str]) -> list[Acted]:
        """Retries, resumes, promotes, cancels or removes jobs: `action` names the statement. Returns the result of
        each."""
        queue = await self._queues.find(name)
        ids = [job_id for job_id in job_ids if is_id(job_id)]
        if queue is None or not ids:
            return [Acted.NOT_FOUND] * len(job_ids)
        values = {"queue": text(name), "ids": plain_list(ids), "own_channel": self._store.own_channel}
        try:
            rows = await self._store.ask(action, values, table=queue.table)
        except Refused as error:
            if error.sqlstate != UNIQUE_VIOLATION:
                raise
            # The queue's policy does not admit one of them, and so none was changed: each is tried alone.
            if len(ids) == 1:
                return [Acted.WRONG_STATE if job_id in ids else Acted.NOT_FOUND for job_id in job_ids]
            return [acted for job_id in job_ids for acted in await self.act(action, name, [job_id])]
        changed = {job_id: changed for job_id, _, changed, *_ in rows}
        return [_acted(action, changed.get(job_id.lower())) for job_id in job_ids]

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return await self.act("cancel", queue, job_ids)

    async def drain(self, name: str, delayed: bool) -> None:
        queue = await self._queues.find(name)
        if queue is not None:
            features = ("delayed_too",) if delayed else ()
            await self._store.ask("drain", {"queue": text(name)}, table=queue.table, features=features)

    async def clean(self, name: str, state: State, older_than: float, limit: int) -> list[str]:
        queue = await self._queues.find(name)
        if state not in _CLEANED:
            raise InvalidOption("state", state.value, f"must be one of {', '.join(_CLEANED)}")
        if queue is None:
            return []
        values = {"queue": text(name), "age": number(older_than), "limit": number(limit)}
        rows = await self._store.ask("clean", values, table=queue.table, features=PAGES[state])
        return [job_id for (job_id,) in rows]

    async def obliterate(self, name: str, force: bool) -> None:
        queue = await self._queues.find(name)
        if queue is None:
            return
        values = {"queue": text(name), "force": flag(force)}
        [(active,)] = await self._store.ask("obliterate", values, table=queue.table)
        if active and not force:
            raise WrongState(f"queue {name!r} has {active} active jobs; force=True deletes them too")


def _acted(action: str, changed: bool | None) -> Acted:
    if changed is None:
        return Acted.NOT_FOUND
    if changed:
        return Acted.DONE
    return Acted.LOCKED if action == "remove" else Acted.WRONG_STATE
