"""Ends a move: removes from the source exactly the jobs that have arrived.

A job that was taken from the source after it was copied, by a worker that ignores the pause, is removed from the target
again, which is still paused. Only after a crash it can't be known whether a missing job was removed by the move or
taken by a worker. It then stays in the target: it runs at least once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from jobwire import urls
from jobwire.boundary import Acted
from jobwire.errors import JobwireError
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.move.schedules import ScheduleMove
from jobwire.pipeline.stores.blocking import BlockingBackend
from jobwire.pipeline.stores.boundary import QueueStore, open_store
from jobwire.preparing import prepare

WAVE = 4_000
"""Jobs that are removed before the journal is written again."""
_VERIFIED = columns("rank bigint", "id string", "target string", "scheduled boolean", "arrived boolean")


@dataclass(frozen=True)
class _Row:
    rank: int
    id: str
    target: str
    scheduled: bool


def cut_over(running: RunningMove) -> None:
    """Removes the verified jobs from the source. Continues where an interrupted cut-over ended."""
    route, journal, there = running.route, running.journal, running.there
    rows = (row for row in _verified(running) if row.rank > journal.removed)
    done = 0
    with closing(open_store(urls.parse(running.here.url), route.queue, route.from_store)) as source:
        while wave := list(islice(rows, WAVE)):
            unsure = journal.cutting
            journal.cutting = max(journal.cutting, wave[-1].rank)
            running.save()
            taken = _remove(source, wave, unsure)
            if taken:
                answers = there.ask(there.backend.remove(route.to_queue, [row.target for row in taken]))
                journal.taken_back += sum(answer is Acted.DONE for answer in answers)
            journal.removed = wave[-1].rank
            done += len(wave)
            running.progress("cut over", done, journal.moving)
    running.save()


def _verified(running: RunningMove) -> Iterator[_Row]:
    """Yields the jobs that have arrived, by rank: they were written by one task, in this order."""
    last = -1
    for batch in running.lake.files.batches(f"workings/{running.path('verified')}", _VERIFIED.arrow):
        for row in cast("list[dict[str, Any]]", batch.to_pylist()):
            if row["rank"] <= last:
                raise JobwireError(f"the record of {running.journal.name} is out of order at rank {row['rank']}")
            last = row["rank"]
            # A record of an earlier release has no such column, and holds jobs that have arrived only.
            if row.pop("arrived") is not False:
                yield _Row(**row)


def _remove(source: QueueStore, wave: Sequence[_Row], unsure: int) -> list[_Row]:
    """Removes the jobs of the wave from the source, each only if it still waits. Returns those that were taken from it
    before."""
    taken: list[_Row] = []
    for row, answer in zip(wave, source.remove_waiting([row.id for row in wave]), strict=True):
        # The job that a schedule had made was removed together with its schedule.
        gone_by_us = answer is Acted.NOT_FOUND and (row.rank <= unsure or row.scheduled)
        if answer is not Acted.DONE and not gone_by_us:
            taken.append(row)
    return taken


def move_schedules(
    route: Route, schedules: Sequence[ScheduleMove], here: BlockingBackend, there: BlockingBackend
) -> int:
    """Creates each schedule in the target before it is removed from the source. After a crash in between, the same key
    is created again."""
    moved = 0
    for one in schedules:
        if one.new is None:
            continue
        job = prepare(there.backend, route.to_queue, one.new.job, None)
        there.ask(there.schedules.schedule(route.to_queue, one.new, job))
        here.ask(here.schedules.unschedule(route.queue, one.key))
        moved += 1
    return moved


def remaining(here: BlockingBackend, queue: str) -> dict[str, Any]:
    """Returns what the source still holds, by state."""
    return {state.value: count for state, count in here.ask(here.backend.counts(queue)).items() if count}
