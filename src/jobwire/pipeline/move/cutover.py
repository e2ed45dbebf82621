"""Ends a move: removes from the source exactly the jobs that have arrived.

A job that was taken from the source after it was copied, by a worker that ignores the pause, is removed from the target
again, which is still paused. Only after a crash it can't be known whether a missing job was removed by the move or
taken by a worker. It then stays in the target: it runs at least once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from jobwire.boundary import Acted
from jobwire.errors import JobwireError
from jobwire.model import State
from jobwire.pipeline.lake.schemas import columns
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.move.schedules import ScheduleMove
from jobwire.pipeline.stores.blocking import BlockingBackend
from jobwire.preparing import prepare

CHUNK = 500
AT_ONCE = 8
"""Portions that are removed at the same time: the store works on some while this process reads the answers of others.
"""
_READY = (State.WAITING, State.PAUSED, State.DELAYED)
_VERIFIED = columns("rank bigint", "id string", "target string", "scheduled boolean")


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
    while wave := list(islice(rows, CHUNK * AT_ONCE)):
        unsure = journal.cutting
        journal.cutting = max(journal.cutting, wave[-1].rank)
        running.save()
        taken = running.here.ask(_remove_all(route, wave, unsure, running.here))
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
            yield _Row(**row)


async def _remove_all(route: Route, wave: Sequence[_Row], unsure: int, here: BlockingBackend) -> list[_Row]:
    """Removes the jobs of the wave from the source, some portions at the same time. Returns those that were taken from
    it before they could be removed. If one portion fails, the others have ended or were cancelled by then."""
    tasks = [
        asyncio.create_task(_remove(route, wave[start : start + CHUNK], unsure, here))
        for start in range(0, len(wave), CHUNK)
    ]
    try:
        return [row for taken in await asyncio.gather(*tasks) for row in taken]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _remove(route: Route, chunk: Sequence[_Row], unsure: int, here: BlockingBackend) -> list[_Row]:
    found = await here.backend.get(route.queue, [row.id for row in chunk])
    waiting = [row for row, job in zip(chunk, found, strict=True) if job is not None and job.state in _READY]
    answers = await here.backend.remove(route.queue, [row.id for row in waiting]) if waiting else []
    removed = {row.id for row, answer in zip(waiting, answers, strict=True) if answer is Acted.DONE}
    taken: list[_Row] = []
    for row, job in zip(chunk, found, strict=True):
        # The job that a schedule had made was removed together with its schedule.
        gone_by_us = job is None and (row.rank <= unsure or row.scheduled)
        if row.id not in removed and not gone_by_us:
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
