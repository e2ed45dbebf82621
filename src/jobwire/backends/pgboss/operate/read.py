"""Reads jobs by id and in pages, and counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobwire.backends.pgboss.codec import read_job
from jobwire.backends.pgboss.connection.pipelined import Value
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import number, plain_list, text
from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.backends.pgboss.queues import Queues
from jobwire.errors import InvalidOption
from jobwire.model import Job, Page, State

COUNTED = (
    State.WAITING,
    State.DELAYED,
    State.ACTIVE,
    State.COMPLETED,
    State.FAILED,
    State.CANCELLED,
    State.WAITING_CHILDREN,
)
PAGES = {
    State.WAITING: ("page_waiting",),
    State.DELAYED: ("page_delayed",),
    State.ACTIVE: ("page_active",),
    State.WAITING_CHILDREN: ("page_blocked",),
    State.COMPLETED: ("page_completed", "page_finished"),
    State.FAILED: ("page_failed", "page_finished"),
    State.CANCELLED: ("page_cancelled", "page_finished"),
}
"""The features of the statements that choose the jobs of a state, and of `clean`."""
_STATEMENTS = {
    State.DELAYED: "page_of_delayed",
    State.COMPLETED: "page_of_finished",
    State.CANCELLED: "page_of_finished",
    State.FAILED: "page_of_failed",
}
"""Statements of states that have an index only with another state, or in parts. The others are read by `page`, and so
are failed jobs backward or from a number on."""


class Reading:
    """Reads the queues of one store."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    async def get(self, name: str, job_ids: Sequence[str]) -> list[Job | None]:
        queue = await self._queues.find(name)
        ids = [job_id for job_id in job_ids if is_id(job_id)]
        if queue is None or not ids:
            return [None] * len(job_ids)
        rows = await self._store.look("get", {"queue": text(name), "ids": plain_list(ids)}, table=queue.table)
        found = {job.id: job for job in (read_job(name, row) for row in rows)}
        return [found.get(job_id.lower()) for job_id in job_ids]

    async def jobs(self, name: str, state: State, limit: int, cursor: str | None, *, skip: int, reverse: bool) -> Page:
        queue = await self._queues.find(name)
        features = PAGES.get(state)
        if (
            queue is None
            or features is None
            or (state is State.WAITING_CHILDREN and not self._store.layout.has("blocked"))
        ):
            return Page()
        values: dict[str, Value] = {"queue": text(name), "limit": number(limit + 1)}
        features = (*features, "backward" if reverse else "forward")
        if cursor is not None:
            values |= _position(cursor)
            features = (*features, "after")
        if skip:
            values["skip"] = number(skip)
            features = (*features, "skip")
        statement = _STATEMENTS.get(state, "page")
        if state is State.FAILED and (reverse or skip):
            statement = "page"
        rows = await self._store.look(statement, values, table=queue.table, features=features)
        jobs = [read_job(name, row) for row in rows[:limit]]
        return Page(jobs, _cursor(jobs[-1]) if len(rows) > limit else None)

    async def counts(self, name: str) -> Mapping[State, int]:
        queue = await self._queues.find(name)
        if queue is None:
            return dict.fromkeys(COUNTED, 0)
        [row] = await self._store.ask("counts", {"queue": text(name)}, table=queue.table)
        return dict(zip(COUNTED, row, strict=True))


def _cursor(job: Job) -> str:
    """Returns the position of a page's last job: priority, due time, the time that jobs of its state are sorted by,
    id."""
    moment = "completed_on" if job.state.finished else "started_on" if job.state is State.ACTIVE else "created_on"
    # Times are copied as the database writes them, since Python can't hold all of them.
    due, at = job.raw.get("start_after", ""), job.raw.get(moment) or "-infinity"
    return f"{-job.priority}_{due}_{at}_{job.id}"


def _position(cursor: str) -> dict[str, Value]:
    """Returns the values of `page` and `page_of_finished` for a cursor. Raises InvalidOption if it is not one."""
    try:
        priority, due, moment, job_id = cursor.split("_")
        if not is_id(job_id):
            raise ValueError(job_id)
        return {"number": number(int(priority)), "due": text(due), "moment": text(moment), "id": text(job_id)}
    except ValueError:
        raise InvalidOption("cursor", cursor, "must be the cursor of a page of this queue") from None
