"""Stores schedules. In Monque a schedule is a job with a cron expression: one document, which is pending again after
each success. Its key is the job's unique key, so a queue has one schedule of a key.

When a key is scheduled again, the peer leaves the existing schedule as it is. jobwire changes it to the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobwire import codec as json_codec
from jobwire.backends.monque import payload
from jobwire.backends.monque.codec import cron_of, key_of, new_document, text_of
from jobwire.backends.monque.connection.clock import moment, ms_of
from jobwire.backends.monque.connection.indexes import CLAIM_INDEX, LIVE, UNIQUE_INDEX, hinted
from jobwire.backends.monque.connection.side_data import SideData
from jobwire.backends.monque.connection.store import Document, Store
from jobwire.backends.monque.produce.add import add
from jobwire.backends.monque.rules import check_key, to_bson
from jobwire.backends.monque.work.wakeup import Wakeup
from jobwire.boundary import PreparedJob
from jobwire.checks import text
from jobwire.cron import Cron
from jobwire.errors import InvalidOption, StoreUnavailable, WrongState
from jobwire.model import AddStatus, Schedule
from jobwire.options import NewJob, NewSchedule

_DECIDED_BY_THE_SCHEDULE = ("id", "delay", "run_at", "unique")
_ROUNDS = 6
_FIELDS = (5, 6)
_RECURRING: Document = {"$type": "string", "$ne": ""}


class MonqueSchedules:
    """Implements Schedules."""

    def __init__(self, store: Store, side: SideData, wakeup: Wakeup) -> None:
        self._store = store
        self._side = side
        self._wakeup = wakeup

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        for option in _DECIDED_BY_THE_SCHEDULE:
            value = getattr(schedule.job, option)
            if value is not None:
                raise InvalidOption(option, value, "can't be given: the schedule decides it for its jobs")
        cron = schedule.cron or ""
        check_key("key", schedule.key)
        # The peer reads fewer fields as the last ones: the first field would not be the minute.
        if not cron.startswith("@") and len(cron.split()) not in _FIELDS:
            raise InvalidOption("cron", cron, "must have 5 fields, or 6 with seconds first")
        await self._store.look_at_clock()
        now = self._store.clock.now_ms()
        due = Cron.parse(cron).next_ms(now, self._store.address.tz)
        data = to_bson(json_codec.loads(job.data))
        document = new_document(queue, data, now=now, due=due, unique_key=schedule.key, cron=cron)
        payload.check_size(document, len(job.data))
        for _ in range(_ROUNDS):
            stands = await _replace(self._store, document)
            if stands is not None:
                return self._scheduled(stands)
            [added] = await add(self._store, [document])
            if added.status is AddStatus.ADDED:
                return self._scheduled(document)
            await _refuse_if_it_does_not_repeat(self._store, queue, schedule.key)
        raise _raced(self._store, schedule.key)

    async def unschedule(self, queue: str, key: str) -> bool:
        """Deletes the job that waits for its next run. One that is active goes on, and is not repeated."""
        text("key", key)
        named = {"$or": [{"uniqueKey": key}, {"uniqueKey": {"$exists": False}, "_id": key_of(key)}]}
        own: Document = {"name": queue, "repeatInterval": _RECURRING, **named}
        for _ in range(_ROUNDS):
            async with self._store.reaching():
                gone = await self._store.jobs.find_one_and_delete({**own, "status": "pending"})
            if gone is not None:
                await self._side.forget([gone["_id"]])
                return True
            async with self._store.reaching():
                running = await self._store.jobs.update_one(
                    {**own, "status": "processing"}, {"$unset": {"repeatInterval": ""}}
                )
                if running.matched_count:
                    return True
                if await self._store.jobs.find_one(own, {"_id": 1}) is None:
                    return False
        raise _raced(self._store, key)

    def job_of(self, schedule: Schedule) -> NewJob:
        return NewJob(schedule.data)

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        live = {"name": queue, "status": {"$in": list(LIVE)}, "repeatInterval": _RECURRING}
        async with self._store.reaching():
            found = await self._store.jobs.find(live, sort=[("uniqueKey", 1), ("_id", 1)]).to_list()
        return [_described(one, self._store.address.tz) for one in found]

    async def search(self, queue: str, most: int) -> tuple[Sequence[Schedule], bool]:
        """No index has the jobs that repeat. If the queue has many live jobs, looks among those with a unique key, and
        among those that are due next: a job that repeats waits for its next run."""
        store, live = self._store, {"name": queue, "status": {"$in": list(LIVE)}}
        async with store.reaching():
            many = await store.count_up_to(live, most) > most
        if not many:
            return await self.schedules(queue), True
        due = {"name": queue, "status": "pending", "nextRunAt": {"$gt": moment(store.clock.now_ms())}}
        async with store.reaching():
            keyed = await self._recurring({**live, "uniqueKey": {"$exists": True}}, most, UNIQUE_INDEX)
            found = {str(one["_id"]): one for one in [*keyed, *await self._recurring(due, most, CLAIM_INDEX)]}
        return [_described(one, store.address.tz) for one in found.values()], False

    async def _recurring(self, condition: Document, most: int, index: str) -> list[Document]:
        """Returns the jobs that repeat among the first ones of an index."""
        stages: list[Document] = [{"$match": condition}, {"$limit": most}, {"$match": {"repeatInterval": _RECURRING}}]

        async def read(hint: str | None) -> list[Document]:
            options: dict[str, Any] = {} if hint is None else {"hint": hint}
            return await (await self._store.jobs.aggregate(stages, **options)).to_list()

        return await hinted(read, index)

    def _scheduled(self, document: Document) -> Schedule:
        """Returns a schedule that was just written, and wakes this connection's workers at its next run."""
        made = _described(document, self._store.address.tz)
        if made.next_run is not None:
            self._wakeup.wake(made.queue, ms_of(made.next_run) or 0)
        return made


def _raced(store: Store, key: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{store.where}: other clients changed the schedule {key!r} during each of {_ROUNDS} attempts; try again"
    )


async def _replace(store: Store, document: Document) -> Document | None:
    """Changes an existing schedule and returns its document, or None if there is none. While its job is active the due
    time stays, since settling the run sets the next one."""
    own = {"name": document["name"], "uniqueKey": document["uniqueKey"], "repeatInterval": _RECURRING}
    change = {name: document[name] for name in ("data", "repeatInterval", "updatedAt")}
    async with store.reaching():
        stands = await store.jobs.find_one_and_update(
            {**own, "status": "pending"},
            {"$set": {**change, "nextRunAt": document["nextRunAt"]}},
            return_document=True,
        )
        if stands is None:
            del change["updatedAt"]  # the outcome of an active job is recognised by it
            stands = await store.jobs.find_one_and_update(
                {**own, "status": "processing"}, {"$set": change}, return_document=True
            )
    return stands


async def _refuse_if_it_does_not_repeat(store: Store, queue: str, key: str) -> None:
    live = {"name": queue, "uniqueKey": key, "status": {"$in": list(LIVE)}}
    async with store.reaching():
        holder = await store.jobs.find_one(live, {"repeatInterval": 1})
    if holder is not None and cron_of(holder) is None:
        raise WrongState(f"the key {key!r} is held by job {holder['_id']}, which does not repeat")


def _described(document: Document, tz: str) -> Schedule:
    key: Any = document.get("uniqueKey")
    name = str(document["name"])
    due = document.get("nextRunAt")
    return Schedule(
        key=str(document["_id"]) if text_of(key) is None else key,
        queue=name,
        name=name,
        cron=cron_of(document),
        tz=tz,
        data=payload.from_bson(document.get("data")),
        next_run=due if isinstance(due, datetime) and not _runs(document, due) else None,
        raw=document,
    )


def _runs(document: Document, due: datetime) -> bool:
    """Returns True if the run of that time is under way. The next time is stored when it ends."""
    locked = document.get("lockedAt")
    return document.get("status") == "processing" and isinstance(locked, datetime) and due <= locked
