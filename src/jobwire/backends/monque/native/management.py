"""Features that only Monque has: bulk actions, statistics, queue views, cursor pages.

manage = Management(connection)
await manage.cancel_jobs(Selector(name="digest", older_than=yesterday))
page = await manage.page(limit=50, cursor=cursor, backward=True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pymongo import errors as driver

from jobwire.backends.monque.backend import Monque
from jobwire.backends.monque.codec import STATES, hashable, native_status
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.store import LONG, Document
from jobwire.backends.monque.native import cursors
from jobwire.backends.monque.native.cursors import Sort
from jobwire.backends.monque.operate import admin
from jobwire.backends.monque.operate.read import described
from jobwire.boundary import Acted, Backend
from jobwire.checks import aware, text, whole
from jobwire.errors import InvalidOption, JobNotFound, WrongState
from jobwire.model import Job

__all__ = ["CursorPage", "Management", "QueueView", "Selector", "Sort", "Statistics", "Within"]

_SPREAD_MS = 30_000
"""Jobs that are retried in bulk are due at random within this time, so that they do not all fail together again."""
_STATISTICS_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects jobs for a bulk action, all of them if nothing is given. The dates limit `createdAt`, exclusively."""

    name: str | None = None
    status: str | Sequence[str] | None = None
    older_than: datetime | None = None
    newer_than: datetime | None = None

    def statuses(self, allowed: Sequence[str] = tuple(STATES)) -> list[str]:
        """Returns the selected statuses that the action may change."""
        if self.status is None:
            return list(allowed)
        asked = [self.status] if isinstance(self.status, str) else list(self.status)
        for status in asked:
            if status not in STATES:
                raise InvalidOption("status", status, f"must be one of {', '.join(STATES)}")
        return [status for status in asked if status in allowed]

    def condition(self) -> Document:
        found: Document = {}
        if self.name is not None:
            found["name"] = text("name", self.name)
        created: Document = {}
        if self.older_than is not None:
            created["$lt"] = aware("older_than", self.older_than)
        if self.newer_than is not None:
            created["$gt"] = aware("newer_than", self.newer_than)
        return {**found, "createdAt": created} if created else found


@dataclass(frozen=True, slots=True)
class Within:
    """Selects jobs for pages. A range of dates includes both ends."""

    name: str | None = None
    status: str | Sequence[str] | None = None
    created: tuple[datetime | None, datetime | None] = (None, None)
    updated: tuple[datetime | None, datetime | None] = (None, None)
    next_run: tuple[datetime | None, datetime | None] = (None, None)

    def condition(self) -> Document:
        selector = Selector(self.name, self.status)
        found = selector.condition()
        if self.status is not None:
            found["status"] = {"$in": selector.statuses()}
        for name, (start, end) in (
            ("createdAt", self.created),
            ("updatedAt", self.updated),
            ("nextRunAt", self.next_run),
        ):
            bounds = {operator: aware(name, value) for operator, value in (("$gte", start), ("$lte", end)) if value}
            if bounds:
                found[name] = bounds
        return found


@dataclass(frozen=True, slots=True)
class Statistics:
    """The number of jobs by status. `mean_lifetime` is the mean time in seconds from creation to completion, None if no
    job has completed."""

    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    total: int = 0
    mean_lifetime: float | None = None


@dataclass(frozen=True, slots=True)
class QueueView:
    """One job name, the statistics of its jobs, and the number of active ones by instance id."""

    name: str
    statistics: Statistics
    running: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class CursorPage:
    """A page of jobs. `cursor` continues in the direction in which the page was read, `back` in the other. Neither
    repeats a job of this page."""

    jobs: list[Job]
    cursor: str | None
    back: str | None
    has_next: bool
    has_previous: bool


class Management:
    """Monque's own features on a Connection (or any object with such a `backend`)."""

    def __init__(self, connection: Any) -> None:
        backend: Backend = connection.backend
        if not isinstance(backend, Monque):
            raise InvalidOption("connection", connection, "must be a connection to a Monque collection")
        self._monque = backend

    # --- acting -----------------------------------------------------------------------------------------------------

    async def reschedule(self, job_id: str, run_at: datetime) -> None:
        """Changes the due time of a pending job."""
        at_ms = int(aware("run_at", run_at).timestamp() * 1000)
        acted = await admin.reschedule(self._monque.store, job_id, at_ms)
        if acted is Acted.NOT_FOUND:
            raise JobNotFound(self._monque.store.address.collection, job_id)
        if acted is not Acted.DONE:
            raise WrongState(f"job {job_id!r} can't be rescheduled: it is not pending")

    async def cancel_jobs(self, selector: Selector) -> int:
        """Cancels the selected jobs that are pending. Returns the number of them."""
        change: Document = {"$set": {"status": "cancelled", "updatedAt": moment(self._monque.store.clock.now_ms())}}
        return await self._change(selector, ["pending"], change)

    async def retry_jobs(self, selector: Selector) -> int:
        """Retries the selected jobs that have failed or were cancelled, spread over half a minute. Returns the number
        of them.

        Raises WrongState if a live job holds the unique key of one. The jobs before that one have been retried.
        """
        spread: Document = {"$floor": {"$multiply": [{"$rand": {}}, _SPREAD_MS]}}
        now = moment(self._monque.store.clock.now_ms())
        revived: Document = {
            "status": "pending",
            "failCount": 0,
            "nextRunAt": {"$add": [now, spread]},
            "updatedAt": now,
        }
        change: list[Document] = [{"$set": revived}, {"$unset": list(admin.REVIVE_UNSETS)}]
        return await self._change(selector, ["failed", "cancelled"], change)

    async def delete_jobs(self, selector: Selector) -> int:
        """Deletes the selected jobs, active ones too, with their side data. Returns the number of them.

        Raises InvalidOption for an empty selector. To delete all jobs, name all five statuses.
        """
        condition = selector.condition()
        if not condition and selector.status is None:
            raise InvalidOption("selector", selector, "must select something: name every status to delete all jobs")
        condition["status"] = {"$in": selector.statuses()}
        return len(await admin.delete(self._monque.store, self._monque.side_data, condition, 0))

    async def _change(self, selector: Selector, allowed: list[str], change: Any) -> int:
        statuses = selector.statuses(allowed)
        if not statuses:
            return 0
        condition = {**selector.condition(), "status": {"$in": statuses}}
        store = self._monque.store
        async with store.reaching(LONG):
            try:
                return (await store.jobs.update_many(condition, change)).modified_count
            except driver.DuplicateKeyError:
                raise WrongState("not all jobs were retried: a live job holds the unique key of one") from None

    # --- reading ----------------------------------------------------------------------------------------------------

    async def statistics(self, name: str | None = None) -> Statistics:
        """Returns the statistics of one name, or of all."""
        views = await self._views(Selector(name).condition(), None)
        return views[0].statistics if views else Statistics()

    async def queue_views(self) -> list[QueueView]:
        """Returns a view of every name that has jobs, sorted by name."""
        return sorted(await self._views({}, "$name"), key=lambda view: view.name)

    async def _views(self, condition: Document, by: str | None) -> list[QueueView]:
        dates = [{"$eq": [{"$type": f"${name}"}, "date"]} for name in ("updatedAt", "createdAt")]
        done = {"$and": [{"$eq": ["$status", "completed"]}, *dates]}
        life = {"$cond": [done, {"$subtract": ["$updatedAt", "$createdAt"]}, None]}
        stages: list[Document] = [
            {"$match": condition},
            {
                "$group": {
                    "_id": {"name": by, "status": "$status", "owner": "$claimedBy"},
                    "jobs": {"$sum": 1},
                    "life": {"$sum": life},
                }
            },
        ]
        store = self._monque.store
        async with store.reaching(_STATISTICS_WITHIN):
            groups = await (await store.jobs.aggregate(stages)).to_list()
        by_name: dict[Any, list[Document]] = {}
        for group in groups:
            by_name.setdefault(hashable(group["_id"].get("name")), []).append(group)
        return [_view(name, some) for name, some in by_name.items()]

    async def page(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        backward: bool = False,
        within: Within | None = None,
        sort: Sort | None = None,
    ) -> CursorPage:
        """Returns jobs in the order of `sort`, forward from a cursor or backward to it.

        The cursor of a page that was read forward names its last job, that of one read backward its first. So pages
        follow each other in both directions. (In the peer both name the last job, and its backward pages overlap.)
        """
        whole("limit", limit, minimum=1)
        sort = sort or Sort()
        up = sort.descending == backward
        clauses: list[Document] = [(within or Within()).condition()]
        if cursor is not None:
            clauses.append(_beyond(sort, cursors.read(cursor, sort), up=up))
        way = 1 if up else -1
        order = [(sort.field, way)] if sort.field == "_id" else [(sort.field, way), ("_id", way)]
        store = self._monque.store
        async with store.reaching():
            found = await store.jobs.find({"$and": clauses}, sort=order, limit=limit + 1).to_list()
        more, shown = len(found) > limit, found[:limit]
        if backward:
            shown.reverse()
        jobs = await described(store, self._monque.side_data, shown)
        ends = (shown[0], shown[-1]) if shown else None
        return CursorPage(
            jobs,
            cursors.write(ends[0] if backward else ends[1], sort, backward=backward) if ends else None,
            cursors.write(ends[1] if backward else ends[0], sort, backward=not backward) if ends else None,
            has_next=cursor is not None if backward else more,
            has_previous=more if backward else cursor is not None,
        )


def _beyond(sort: Sort, anchor: cursors.Anchor, *, up: bool) -> Document:
    operator = "$gt" if up else "$lt"
    if sort.field == "_id":
        return {"_id": {operator: anchor.id}}
    return {"$or": [{sort.field: {operator: anchor.value}}, {sort.field: anchor.value, "_id": {operator: anchor.id}}]}


def _view(name: Any, groups: list[Document]) -> QueueView:
    counts = dict.fromkeys(STATES, 0)
    running: dict[str, int] = {}
    life = 0.0
    for group in groups:
        status, jobs = native_status(group["_id"]), int(group["jobs"])
        if status in counts:
            counts[status] += jobs
        if status == "processing":
            owner = str(group["_id"].get("owner"))
            running[owner] = running.get(owner, 0) + jobs
        life += float(group["life"])
    done = counts["completed"]
    total = sum(int(group["jobs"]) for group in groups)
    mean = round(life / done) / 1000 if done else None
    return QueueView(str(name), Statistics(**counts, total=total, mean_lifetime=mean), running)
