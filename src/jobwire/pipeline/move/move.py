"""Moves a queue from one store to another, step by step. journal.py describes how an interrupted move continues."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from jobwire.checks import Seconds, seconds
from jobwire.counted import counted
from jobwire.errors import JobwireError
from jobwire.model import State
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.move.abandon import release
from jobwire.pipeline.move.copy import copy, freeze
from jobwire.pipeline.move.cutover import cut_over, move_schedules, remaining
from jobwire.pipeline.move.finished import move_finished
from jobwire.pipeline.move.journal import Journal
from jobwire.pipeline.move.plan import for_few
from jobwire.pipeline.move.route import Route
from jobwire.pipeline.move.running_move import RunningMove
from jobwire.pipeline.move.schedules import plan_schedules
from jobwire.pipeline.move.verify import Verified, verify
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.stores.blocking import blocking_backend

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_AGAIN = 0.05


@dataclass(frozen=True)
class MoveResult:
    """The result of a move, from its first call to its last if it was interrupted in between."""

    name: str
    from_store: str
    from_queue: str
    to_store: str
    to_queue: str
    moved: int
    left: int
    """Jobs that could not be moved and stay in the source."""
    taken_back: int
    """Jobs that workers took from the source while they were copied. Their copies have been removed."""
    finished: int
    schedules: Sequence[str]
    schedules_that_stay: Sequence[str]
    verified: Verified
    refused: Mapping[str, int]
    source_paused: bool
    remaining: Mapping[str, int]
    """Jobs that the source still holds, by state: those that stay, that were active, and that were added during the
    move."""
    next_step: str
    resumed: bool = False
    """True if an interrupted move was continued."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def move(
    spark: SparkSession,
    lake: Lake,
    source: str,
    target: str,
    queue: str,
    *,
    to_queue: str | None = None,
    drop: frozenset[str] = frozenset(),
    leave: bool = False,
    include: frozenset[str] = frozenset(),
    drain_timeout: Seconds = 60.0,
    resume_source: bool = False,
    progress: Progress = silent,
) -> MoveResult:
    """Moves the waiting jobs, the delayed jobs and the schedules of a queue. Call it again to continue after a crash.

    Both queues are paused during the move, so that nothing runs before it is verified. The target is resumed at the
    end; the source stays paused unless `resume_source`. Raises JobwireError, with every job still in the source, if a
    job can't be moved as it is (see plan_move) or is not found again in the target.
    """
    patience = seconds("drain_timeout", drain_timeout)
    route = Route(source, target, queue, to_queue or queue, frozenset(drop), leave, frozenset(include))
    with (
        lake.files.locked(route.name),
        lake.run("move", store=route.from_store, queue=queue, to_store=route.to_store, to_queue=route.to_queue) as run,
        blocking_backend(source) as here,
        blocking_backend(target) as there,
    ):
        found = Journal.found(route.name, lake)
        running = RunningMove(spark, route, lake, here, there, found or Journal(route.name), progress)
        with for_few(spark, here, queue):
            result = _steps(running, patience, resume_source, resumed=found is not None)
        run.rows_in, run.rows_out = running.journal.moving, result.moved
        run.note(**result.as_dict())
    return result


def verify_move(
    spark: SparkSession, lake: Lake, source: str, target: str, queue: str, *, to_queue: str | None = None
) -> Verified:
    """Compares again what a move that has not been cut over yet has copied."""
    route = Route(source, target, queue, to_queue or queue)
    journal = Journal.found(route.name, lake)
    if journal is None or not journal.reached("frozen"):
        raise JobwireError(f"no move of {queue!r} from {route.from_store} to {route.to_store} is under way")
    with blocking_backend(source) as here, blocking_backend(target) as there:
        return verify(RunningMove(spark, route, lake, here, there, journal, silent), for_good=False)


def _steps(running: RunningMove, drain_timeout: float, resume_source: bool, *, resumed: bool) -> MoveResult:
    route, journal, here, there = running.route, running.journal, running.here, running.there
    if not journal.reached("paused"):
        _pause(running)
    schedules = plan_schedules(here, route.queue, there, route.to_queue)
    if not journal.reached("frozen"):
        _drain(running, drain_timeout)
        running.progress("plan", 0, None)
        try:
            freeze(running, schedules)
        except JobwireError:
            release(running)
            raise
        running.enter("frozen")
    if not journal.reached("verified"):
        _copy_and_verify(running)
    for one in schedules:
        if not one.stays and f"{one.key}: {one.described}" not in journal.schedules:
            journal.schedules.append(f"{one.key}: {one.described}")
    running.save()
    move_schedules(route, schedules, here, there)
    if not journal.reached("cut"):
        cut_over(running)
        journal.finished, _ = move_finished(running)
        running.enter("cut")
    return _ended(running, [f"{one.key}: {one.described}" for one in schedules if one.stays], resume_source, resumed)


def _pause(running: RunningMove) -> None:
    """Records which queues were paused before: after a crash that can't be told from the move's own pause."""
    route, journal = running.route, running.journal
    running.there.ask(running.there.backend.register(route.to_queue))
    journal.source_was_paused = running.here.ask(running.here.pause.paused(route.queue))
    journal.target_was_paused = running.there.ask(running.there.pause.paused(route.to_queue))
    running.enter("paused")


def _drain(running: RunningMove, timeout: float) -> None:
    """Waits for the running jobs. Those that still run at the end stay in the source."""
    backend, queue = running.here.backend, running.route.queue
    running.here.ask(running.here.pause.pause(queue))
    running.there.ask(running.there.pause.pause(running.route.to_queue))
    until = time.monotonic() + timeout
    first: int | None = None
    while True:
        active = running.here.ask(backend.counts(queue)).get(State.ACTIVE, 0)
        first = active if first is None else first
        running.progress("drain", max(0, first - active), first)
        if not active or time.monotonic() >= until:
            return
        time.sleep(_LOOK_AGAIN)


def _copy_and_verify(running: RunningMove) -> None:
    journal = running.journal
    running.progress("copy", 0, journal.moving)
    running.enter("copying")
    journal.refused = dict(copy(running))
    running.progress("copy", journal.moving, journal.moving)
    running.progress("verify", 0, journal.moving)
    compared = verify(running)
    running.progress("verify", compared.equal + compared.begun, journal.moving)
    if not compared.sound and (compared.out_of_order or not running.route.leave):
        reasons = "".join(f"; {reason}: {count}" for reason, count in journal.refused.items())
        raise JobwireError(
            f"of {counted(journal.moving, 'job')} copied to {running.route.to_store}: {', '.join(compared.faults)}"
            f"{reasons}; the source still has them all: give the command again, or abandon the move"
        )
    journal.verified = asdict(compared)
    journal.left += compared.missing + compared.changed
    running.enter("verified")


def _ended(running: RunningMove, stay: Sequence[str], resume_source: bool, resumed: bool) -> MoveResult:
    route, journal, here, there = running.route, running.journal, running.here, running.there
    if not journal.target_was_paused:
        there.ask(there.pause.resume(route.to_queue))
    paused = not resume_source or journal.source_was_paused
    if not paused:
        here.ask(here.pause.resume(route.queue))
    left = remaining(here, route.queue)
    compared = Verified(**journal.verified)
    result = MoveResult(
        name=journal.name,
        from_store=route.from_store,
        from_queue=route.queue,
        to_store=route.to_store,
        to_queue=route.to_queue,
        moved=compared.equal + compared.begun - journal.taken_back,
        left=journal.left,
        taken_back=journal.taken_back,
        finished=journal.finished,
        schedules=journal.schedules,
        schedules_that_stay=stay,
        verified=compared,
        refused=journal.refused,
        source_paused=paused,
        remaining=left,
        next_step=_next_step(route, left, paused=paused),
        resumed=resumed,
    )
    journal.end(running.lake)
    return result


def _next_step(route: Route, left: Mapping[str, int], *, paused: bool) -> str:
    waiting = sum(left.get(state.value, 0) for state in (State.WAITING, State.PAUSED, State.DELAYED, State.ACTIVE))
    producers = f"point producers and workers to {route.to_store}, queue {route.to_queue!r}"
    if waiting:
        held = counted(waiting, "job")
        return f"{producers}; the source still holds {held}: give the command again to move what came since"
    return f"{producers}; the source is empty" + (" and paused" if paused else "")
