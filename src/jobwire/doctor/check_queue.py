"""The checks of one queue, the same for every protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from jobwire.boundary import Backend, Feature, Finding, Severity, Thresholds
from jobwire.boundary.finding_kinds import (
    FINISHED,
    NO_WORKER,
    OVERDUE,
    PAUSED,
    SCHEDULES_STOPPED,
    STALLED,
    UNROUTABLE,
    WAITING,
)
from jobwire.counted import counted, few
from jobwire.model import Job, Schedule, State

_SAMPLE = 100
_FAR_ABOVE = 10
"""Finished jobs are a warning from that many times the threshold on, and a note below."""


class QueueCheck:
    """Looks at one queue. Reads its counts, the ends of its lists, and up to a hundred stalled or unroutable jobs."""

    def __init__(self, backend: Backend, queue: str, thresholds: Thresholds) -> None:
        self._backend = backend
        self._queue = queue
        self._limits = thresholds
        self._now = datetime.now(UTC)

    async def run(self) -> Sequence[Finding]:
        backend, queue = self._backend, self._queue
        if backend.diagnosis is not None:
            self._now = datetime.fromtimestamp(await backend.diagnosis.now(), UTC)
        counts = await backend.counts(queue)
        paused = backend.pause is not None and await backend.pause.paused(queue)
        schedules: Sequence[Schedule] = ()
        if backend.schedules is not None:
            schedules = await backend.schedules.schedules(queue)
        stalled: Sequence[str] = ()
        if backend.diagnosis is not None and counts.get(State.ACTIVE):
            stalled = await backend.diagnosis.stalled(queue, _SAMPLE)
        running = counts.get(State.ACTIVE, 0) > len(stalled)
        found = [*await self._waiting(counts, schedules, paused, running), *self._stalled(counts, stalled)]
        if not paused:
            found += [*await self._overdue(counts), *self._schedules(schedules), *await self._unroutable(counts)]
        return [*found, *self._finished(counts)]

    async def _waiting(
        self, counts: Mapping[State, int], schedules: Sequence[Schedule], paused: bool, running: bool
    ) -> Sequence[Finding]:
        """Returns the finding that jobs wait. A worker that runs a job need not be in the list of workers: some lists
        have only those that wait for jobs."""
        queue, limits, waiting = self._queue, self._limits, counts.get(State.WAITING, 0)
        age, oldest = await self._oldest(counts)
        shown = f"{counted(waiting, 'job')} waiting" + (f", the oldest for {_spoken(age)}" if oldest else "")
        if paused:
            long = bool(oldest) and age >= limits.paused
            return [PAUSED.found(shown, queue=queue, remedy=f"jobwire resume {queue}")] if long else []
        start = f"jobwire worker MODULE:HANDLER --queue {queue}"
        unfinished = {state: number for state, number in counts.items() if number and not state.finished}
        workers = self._backend.workers
        if workers is not None and not running and (unfinished or schedules) and not await workers.workers(queue):
            parts = [f"{number:,} {state.value.replace('_', ' ')}" for state, number in unfinished.items()]
            parts += [counted(len(schedules), "schedule")] if schedules else []
            late = f"; the oldest has waited for {_spoken(age)}" if oldest else ""
            evidence = f"{', '.join(parts)}, and no worker is connected{late}"
            return [NO_WORKER.found(evidence, queue=queue, remedy=start)]
        if not oldest or age < limits.waiting:
            return []
        active = counts.get(State.ACTIVE, 0)
        return [WAITING.found(f"{shown}; {active:,} active", queue=queue, remedy=start)]

    async def _oldest(self, counts: Mapping[State, int]) -> tuple[float, bool]:
        """Returns the seconds since the older of the first and the last waiting job became ready, and whether there is
        one."""
        if not counts.get(State.WAITING):
            return 0.0, False
        ends = [await self._backend.jobs(self._queue, State.WAITING, 1, None, reverse=end) for end in (False, True)]
        ready = [since for page in ends for job in page if (since := _ready_since(job)) is not None]
        if not ready:
            return 0.0, False
        return max(0.0, (self._now - min(ready)).total_seconds()), True

    def _stalled(self, counts: Mapping[State, int], ids: Sequence[str]) -> Sequence[Finding]:
        if not ids:
            return []
        number = f"{_SAMPLE} or more" if len(ids) == _SAMPLE else f"{len(ids):,}"
        evidence = f"{number} of {counts[State.ACTIVE]:,} active jobs have an expired lease: {few(ids)}"
        return [STALLED.found(evidence, queue=self._queue)]

    async def _overdue(self, counts: Mapping[State, int]) -> Sequence[Finding]:
        if not counts.get(State.DELAYED):
            return []
        for job in await self._backend.jobs(self._queue, State.DELAYED, 1, None):
            late = 0.0 if job.run_at is None else (self._now - job.run_at).total_seconds()
            if late >= self._limits.overdue:
                evidence = f"job {job.id} was due {_spoken(late)} ago; {counts[State.DELAYED]:,} delayed in all"
                return [OVERDUE.found(evidence, queue=self._queue)]
        return []

    def _schedules(self, schedules: Sequence[Schedule]) -> Sequence[Finding]:
        late = [
            (self._now - one.next_run, one)
            for one in schedules
            if one.next_run is not None and (self._now - one.next_run).total_seconds() >= self._limits.overdue
        ]
        if not late:
            return []
        longest, one = max(late, key=lambda pair: pair[0])
        evidence = (
            f"{counted(len(late), 'schedule')} late; {one.key} should have run {_spoken(longest.total_seconds())} ago"
        )
        return [SCHEDULES_STOPPED.found(evidence, queue=self._queue)]

    async def _unroutable(self, counts: Mapping[State, int]) -> Sequence[Finding]:
        routing, workers = self._backend.routing, self._backend.workers
        if routing is None or not counts.get(State.WAITING):
            return []
        if workers is not None and not await workers.workers(self._queue):
            return []  # without any worker, that is the finding
        jobs = await routing.unroutable(self._queue, _SAMPLE)
        if not jobs:
            return []
        number = f"{_SAMPLE} jobs or more" if len(jobs) == _SAMPLE else counted(len(jobs), "job")
        evidence = f"{number}: {few([job.id for job in jobs])}"
        remedy = f"start a worker that they admit, or jobwire remove {self._queue} {jobs[0].id}"
        return [UNROUTABLE.found(evidence, queue=self._queue, remedy=remedy)]

    def _finished(self, counts: Mapping[State, int]) -> Sequence[Finding]:
        done = {state: number for state, number in counts.items() if state.finished and number}
        total = sum(done.values())
        if total < self._limits.finished:
            return []
        evidence = ", ".join(f"{number:,} {state.value}" for state, number in done.items())
        largest = max(done, key=lambda state: done[state])
        keep = "keep_failed" if largest is State.FAILED else "keep_completed"
        lasting = self._backend.capabilities.nearest.get(Feature.KEEP, f"give workers {keep}=Keep(age=…)")
        remedy = f"jobwire clean {self._queue} --state {largest.value} --older-than 7d; {lasting}"
        severity = Severity.WARNING if total >= _FAR_ABOVE * self._limits.finished else Severity.NOTE
        return [FINISHED.found(evidence, queue=self._queue, severity=severity, remedy=remedy)]


def _ready_since(job: Job) -> datetime | None:
    times = [when for when in (job.created_at, job.run_at) if when is not None]
    return max(times, default=None)


def _spoken(seconds: float) -> str:
    for unit, length, least in (("d", 86_400, 2 * 86_400), ("h", 3600, 2 * 3600), ("min", 60, 120)):
        if seconds >= least:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} s"
