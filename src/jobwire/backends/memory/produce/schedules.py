"""Repeating jobs.

A schedule always has one pending job, waiting or delayed. When a worker starts it, the next one is added. So a schedule
without workers does not pile up jobs, and the runs missed meanwhile are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobwire import codec
from jobwire.backends.memory.connection import Access
from jobwire.backends.memory.produce.add import insert
from jobwire.backends.memory.store.queue_state import QueueState, Repeat
from jobwire.backends.memory.store.record import Record, at_ms, new_record
from jobwire.boundary import PreparedJob
from jobwire.checks import seconds
from jobwire.cron import Cron
from jobwire.errors import InvalidOption
from jobwire.model import Schedule, State
from jobwire.options import NewJob, NewSchedule

_DECIDED_BY_THE_SCHEDULE = ("id", "delay", "run_at", "unique", "parent")


class MemorySchedules:
    """Implements Schedules."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        with self._access.locked(queue) as (state, now):
            return _schedule(state, schedule, job, now)

    async def unschedule(self, queue: str, key: str) -> bool:
        with self._access.locked(queue) as (state, now):
            return _unschedule(state, key, now)

    async def search(self, queue: str, most: int) -> tuple[Sequence[Schedule], bool]:
        return await self.schedules(queue), True

    def job_of(self, schedule: Schedule) -> NewJob:
        made: NewJob = schedule.raw["job"]
        return made

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        with self._access.locked(queue) as (state, _):
            return [described(state, repeat) for _, repeat in sorted(state.repeats.items())]


def _schedule(queue: QueueState, new: NewSchedule, prepared: PreparedJob, now: int) -> Schedule:
    """Creates the schedule, or replaces the one of this key and its pending job. Does not stop a running job of it."""
    for option in _DECIDED_BY_THE_SCHEDULE:
        if getattr(new.job, option) is not None:
            raise InvalidOption(
                option, getattr(new.job, option), "can't be given: the schedule decides it for its jobs"
            )
    repeat = Repeat(
        key=new.key,
        name=prepared.name,
        data=prepared.data,
        template=prepared,
        every=round(seconds("every", new.every) * 1000) if new.every is not None else None,
        cron=new.cron,
        tz=new.tz,
        limit=new.limit,
        start=_ms(new.start_at),
        end=_ms(new.end_at),
    )
    if repeat.end is not None and repeat.end <= now:
        raise InvalidOption("end_at", new.end_at, "must lie in the future")
    _after(repeat, now)
    replaced = queue.repeats.get(new.key)
    if replaced is not None:
        repeat.runs = replaced.runs
        _drop_pending(queue, replaced, now)
    queue.repeats[new.key] = repeat
    earliest = max(now, repeat.start or now)
    first = earliest if repeat.every is not None or new.immediately else _after(repeat, earliest)
    _make(queue, repeat, first, now)
    return described(queue, repeat)


def _unschedule(queue: QueueState, key: str, now: int) -> bool:
    repeat = queue.repeats.pop(key, None)
    if repeat is None:
        return False
    _drop_pending(queue, repeat, now)
    return True


def advance(queue: QueueState, started: Record, now: int) -> None:
    """Adds the next job of a schedule when a worker has started its pending one."""
    repeat = queue.repeats.get(started.schedule_key or "")
    if repeat is None or repeat.pending != started.id or repeat.next is None:
        return
    _make(queue, repeat, _after(repeat, max(repeat.next, now)), now)


def described(queue: QueueState, repeat: Repeat) -> Schedule:
    return Schedule(
        key=repeat.key,
        queue=queue.name,
        name=repeat.name,
        every=repeat.every / 1000 if repeat.every is not None else None,
        cron=repeat.cron,
        tz=repeat.tz,
        data=codec.loads(repeat.data),
        next_run=_when(repeat.next),
        runs=repeat.runs,
        limit=repeat.limit,
        start_at=_when(repeat.start),
        end_at=_when(repeat.end),
        raw={"job": repeat.template.new},
    )


def _make(queue: QueueState, repeat: Repeat, due: int, now: int) -> None:
    repeat.pending = repeat.next = None
    if (repeat.limit is not None and repeat.runs >= repeat.limit) or (repeat.end is not None and due > repeat.end):
        return
    job_id = f"repeat:{repeat.key}:{due}"
    while job_id in queue.jobs:  # after a replacement, a job of the same time may exist already
        due += 1
        job_id = f"repeat:{repeat.key}:{due}"
    record = new_record(job_id, repeat.template, now)
    record.due = due
    record.schedule_key = repeat.key
    repeat.next, repeat.pending = due, job_id
    repeat.runs += 1
    insert(queue, record, now)


def _after(repeat: Repeat, moment: int) -> int:
    """Returns the schedule's first due time after the moment."""
    if repeat.cron is not None:
        return Cron.parse(repeat.cron).next_ms(moment, repeat.tz or "UTC")
    every = repeat.every or 1
    last = repeat.next if repeat.next is not None else moment
    return last + ((moment - last) // every + 1) * every


def _drop_pending(queue: QueueState, repeat: Repeat, now: int) -> None:
    record = queue.jobs.get(repeat.pending or "")
    if record is not None and record.state in (State.WAITING, State.DELAYED):
        state = queue.forget(record)
        queue.log_event("removed", now, record, prev=state.value)
        repeat.runs -= 1


def _ms(moment: datetime | None) -> int | None:
    return int(moment.timestamp() * 1000) if moment is not None else None


def _when(moment: int | None) -> datetime | None:
    return at_ms(moment) if moment is not None else None
