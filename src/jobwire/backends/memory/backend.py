"""The memory store behind jobwire's boundary."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

from jobwire.backend import Acted, Added, Backend, Capabilities, Consumer, ConsumerSettings, PreparedJob
from jobwire.backends.memory import adding, admin, control, families, listing, schedules
from jobwire.backends.memory.consumer import MemoryConsumer
from jobwire.backends.memory.queue_state import QueueState
from jobwire.backends.memory.rules import OWN_RULES, imitated
from jobwire.backends.memory.store import NAMED, Store
from jobwire.backends.rules import rules_of
from jobwire.errors import InvalidOption, StoreUnavailable
from jobwire.facets import FlowNode
from jobwire.model import Children, Event, Job, JobKey, Limits, Page, Schedule, State, WorkerInfo
from jobwire.options import NewJob, NewSchedule


class MemoryBackend:
    """A store of this process, which every backend of its name shares while one is open. `store`: a private one."""

    def __init__(self, name: str = "", store: Store | None = None, *, like: str | None = None) -> None:
        self._name = name
        self._like = like
        self._rules = OWN_RULES if like is None else imitated(rules_of(like))
        self._private = store
        self._taken: Store | None = None
        self._closed = False

    @property
    def capabilities(self) -> Capabilities:
        return self._rules.capabilities

    async def open(self) -> None:
        self._closed = False
        self._reach()

    async def close(self) -> None:
        if self._taken is not None and self._private is None:
            NAMED.give_back(self._shared_name)
        self._taken = None
        self._closed = True

    def twin(self) -> Backend:
        return MemoryBackend(self._name, self._private, like=self._like)

    def check(self, queue: str, job: NewJob) -> None:
        self._rules.check(queue, job)

    def check_flow(self, queues: Sequence[str]) -> None:
        """Any queues can be in one flow."""

    async def register(self, queue: str) -> None:
        """There is nobody to make the queue known to."""

    async def add(self, queue: str, jobs: Sequence[PreparedJob], connection: Any = None) -> Sequence[Added]:
        for job in jobs:
            self._rules.check_encoded(job)
        with self._locked(queue) as (state, now):
            return [adding.add(state, job, now) for job in jobs]

    def check_worker(self, settings: ConsumerSettings) -> None:
        if settings.native is not None:
            raise InvalidOption("native", settings.native, "can't be given: the memory store has no options of its own")

    def consumer(self, settings: ConsumerSettings) -> Consumer:
        self.check_worker(settings)
        return MemoryConsumer(self._reach(), settings)

    async def get(self, queue: str, job_ids: Sequence[str]) -> Sequence[Job | None]:
        with self._locked(queue) as (state, now):
            state.promote_due(now)
            records = [state.jobs.get(job_id) for job_id in job_ids]
            return [record.snapshot(queue) if record is not None else None for record in records]

    async def jobs(
        self, queue: str, state: State, limit: int, cursor: str | None, *, skip: int = 0, reverse: bool = False
    ) -> Page:
        with self._locked(queue) as (held, now):
            held.promote_due(now)
            return listing.page(held, state, limit, cursor, skip=skip, reverse=reverse)

    async def counts(self, queue: str) -> Mapping[State, int]:
        with self._locked(queue) as (state, now):
            state.promote_due(now)
            return listing.counts(state)

    async def pause(self, queue: str) -> None:
        with self._locked(queue) as (state, now):
            admin.pause(state, now)

    async def resume(self, queue: str) -> None:
        with self._locked(queue) as (state, now):
            admin.resume(state, now)

    async def paused(self, queue: str) -> bool:
        with self._locked(queue) as (state, _):
            return state.paused

    async def retry(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._each(queue, job_ids, admin.retry)

    async def promote(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._each(queue, job_ids, admin.promote)

    async def cancel(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._each(queue, job_ids, admin.cancel)

    async def remove(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._each(queue, job_ids, admin.remove)

    async def drain(self, queue: str, delayed: bool) -> None:
        with self._locked(queue) as (state, now):
            admin.drain(state, delayed, now)

    async def clean(self, queue: str, state: State, older_than: float, limit: int) -> Sequence[str]:
        with self._locked(queue) as (held, now):
            return admin.clean(held, state, older_than, limit, now)

    async def obliterate(self, queue: str, force: bool) -> None:
        with self._locked(queue) as (state, now):
            admin.obliterate(state, force, now)

    async def update_progress(self, queue: str, job_id: str, value: bytes) -> Acted:
        with self._locked(queue) as (state, now):
            record = state.jobs.get(job_id)
            if record is None:
                return Acted.NOT_FOUND
            record.progress = value
            state.happen("progress", now, record, data=value)
            return Acted.DONE

    async def log(self, queue: str, job_id: str, line: str, keep: int) -> Acted:
        with self._locked(queue) as (state, _):
            record = state.jobs.get(job_id)
            if record is None:
                return Acted.NOT_FOUND
            record.logs.append(line)
            if keep:
                del record.logs[:-keep]
            return Acted.DONE

    async def logs(self, queue: str, job_id: str) -> Sequence[str]:
        with self._locked(queue) as (state, _):
            record = state.jobs.get(job_id)
            return list(record.logs) if record is not None else []

    async def schedule(self, queue: str, schedule: NewSchedule, job: PreparedJob) -> Schedule:
        with self._locked(queue) as (state, now):
            return schedules.schedule(state, schedule, job, now)

    async def unschedule(self, queue: str, key: str) -> bool:
        with self._locked(queue) as (state, now):
            return schedules.unschedule(state, key, now)

    async def schedules(self, queue: str) -> Sequence[Schedule]:
        with self._locked(queue) as (state, _):
            return [schedules.described(state, repeat) for _, repeat in sorted(state.repeats.items())]

    async def cursor(self, queue: str) -> str:
        with self._locked(queue) as (state, _):
            return str(state.log.last)

    async def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        if not since.isdecimal():
            raise InvalidOption("since", since, "must be the id of an event, or a cursor")
        last = int(since)
        store = self._reach()
        while True:
            with self._locked(queue) as (state, _):
                happened = state.log.after(last)
                sleeper = state.news.enroll() if not happened else None
            if sleeper is not None:
                try:
                    await sleeper
                finally:
                    with store.lock:
                        state.news.leave(sleeper)
            for happening in happened:
                last = happening.number
                yield happening.event()

    async def workers(self, queue: str) -> Sequence[WorkerInfo]:
        with self._locked(queue) as (state, _):
            return [WorkerInfo(there.name, raw={"id": worker_id}) for worker_id, there in state.workers.items()]

    # --- flows, changes, limits -------------------------------------------------------------------------------------

    async def add_flow(self, roots: Sequence[FlowNode]) -> Sequence[Added]:
        store = self._reach()
        with store.lock:
            return adding.add_flow(store, roots, store.now())

    async def children(self, queue: str, job_id: str) -> Children:
        with self._locked(queue) as (state, _):
            return families.described(state.jobs.get(job_id))

    async def children_of(self, keys: Sequence[JobKey], limit: int) -> Sequence[Sequence[JobKey]]:
        store = self._reach()
        with store.lock:
            return [families.keys_of(store.queue(key.queue).jobs.get(key.id), limit) for key in keys]

    async def remove_alone(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._each(queue, job_ids, admin.remove_alone)

    async def retry_anew(self, queue: str, job_ids: Sequence[str]) -> Sequence[Acted]:
        return self._each(queue, job_ids, control.retry_anew)

    async def update_data(self, queue: str, job_id: str, data: bytes) -> Acted:
        with self._locked(queue) as (state, _):
            if job_id not in state.jobs:
                return Acted.NOT_FOUND
            state.jobs[job_id].data = data
            return Acted.DONE

    async def change_priority(self, queue: str, job_id: str, priority: int, front: bool) -> Acted:
        return self._each(queue, [job_id], partial(control.change_priority, priority=priority, front=front))[0]

    async def change_delay(self, queue: str, job_id: str, delay: float) -> Acted:
        return self._each(queue, [job_id], partial(control.change_delay, delay=delay))[0]

    async def clear_logs(self, queue: str, job_id: str, keep: int) -> Acted:
        with self._locked(queue) as (state, _):
            record = state.jobs.get(job_id)
            if record is None:
                return Acted.NOT_FOUND
            record.logs = record.logs[-keep:] if keep else []
            return Acted.DONE

    async def now(self) -> float:
        return time.time()

    async def retry_all(self, queue: str, state: State, before: float, limit: int) -> int:
        with self._locked(queue) as (held, now):
            return control.retry_all(held, state, before, limit=limit, now=now)

    async def promote_all(self, queue: str, limit: int) -> int:
        with self._locked(queue) as (state, now):
            return control.promote_all(state, limit, now)

    async def limits(self, queue: str) -> Limits:
        with self._locked(queue) as (state, now):
            return control.limits(state, now)

    async def limit_rate(self, queue: str, rate: tuple[int, float] | None) -> None:
        with self._locked(queue) as (state, _):
            state.rate = rate
            state.work.wake()

    async def limit_concurrency(self, queue: str, concurrency: int | None) -> None:
        with self._locked(queue) as (state, _):
            state.concurrency = concurrency
            state.work.wake()

    async def throttle(self, queue: str, delay: float) -> None:
        with self._locked(queue) as (state, now):
            control.throttle(state, delay, now)

    async def publish(self, queue: str, event: str, fields: Mapping[str, str]) -> str:
        with self._locked(queue) as (state, now):
            state.happen(event, now, None, **fields)
            return str(state.log.last)

    async def trim_events(self, queue: str, keep: int) -> int:
        with self._locked(queue) as (state, _):
            return state.log.trim(keep)

    async def limit_events(self, queue: str, keep: int) -> None:
        with self._locked(queue) as (state, _):
            state.log.keep(keep)

    async def unique_owner(self, queue: str, key: str) -> str | None:
        with self._locked(queue) as (state, now):
            holder = state.unique.holder(key, now)
            return holder.job_id if holder is not None else None

    async def release_unique(self, queue: str, key: str) -> bool:
        with self._locked(queue) as (state, now):
            return state.unique.free(key, now)

    def _reach(self) -> Store:
        if self._closed:
            raise StoreUnavailable("the connection to the memory store is closed")
        if self._taken is None:
            self._taken = self._private or NAMED.take(self._shared_name, partial(Store, rank=self._rules.rank))
        return self._taken

    @property
    def _shared_name(self) -> str:
        return self._name if self._like is None else f"{self._name}?like={self._like}"

    @contextlib.contextmanager
    def _locked(self, queue: str) -> Generator[tuple[QueueState, int]]:
        store = self._reach()
        with store.lock:
            yield store.queue(queue), store.now()

    def _each(
        self, queue: str, job_ids: Sequence[str], act: Callable[[QueueState, str, int], Acted]
    ) -> Sequence[Acted]:
        with self._locked(queue) as (state, now):
            state.promote_due(now)
            return [act(state, job_id, now) for job_id in job_ids]
