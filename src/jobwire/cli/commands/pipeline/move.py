"""`jobwire pipeline move`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, Conf, LakeRoot, Master, OneQueue, settings
from jobwire.cli.parameters import Json
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.pipeline.move.move import MoveResult
    from jobwire.pipeline.move.plan import MovePlan
    from jobwire.pipeline.move.verify import Verified


def move(
    *,
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="The store that has the jobs.", show_default=False)
    ],
    target: Annotated[str, typer.Option("--to", metavar="URL", help="The store to move them to.", show_default=False)],
    queue: OneQueue,
    to_queue: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The queue's name in the new store. Default: the same.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", metavar="", help="Show the plan and change nothing.")] = False,
    verify_only: Annotated[
        bool,
        typer.Option("--verify-only", metavar="", help="Compare the jobs that an unfinished move has copied so far."),
    ] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", metavar="", help="Abandon a move that was interrupted before its cut-over.")
    ] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT", help="Properties that jobs may lose: names, unique_keys or parents.", show_default=False
        ),
    ] = None,
    leave: Annotated[
        bool, typer.Option("--leave", metavar="", help="Leave jobs that can't be moved in the source.")
    ] = False,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help="Move finished jobs too: completed, failed.", show_default=False),
    ] = None,
    drain_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for jobs that are running.", min=0)
    ] = 60,
    resume_source: Annotated[
        bool, typer.Option("--resume-source", metavar="", help="Do not leave the source paused.")
    ] = False,
    lake: LakeRoot = LAKE,
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Move a queue from one store to another, in its order. After a crash, run the same command again to continue."""
    from jobwire.cli.commands.pipeline.stage import session_when_needed, staged
    from jobwire.cli.output import console, emit
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.move import abandon_move, plan_move, verify_move
    from jobwire.pipeline.move import move as carry
    from jobwire.pipeline.move.plan import are_few

    may_lose, states = frozenset(drop or ()), frozenset(include or ())
    with staged(quiet=as_json) as progress:
        brief = are_few(source, queue, states)
        spark = session_when_needed(master, settings(conf), progress, brief=brief)()
        outcome: MovePlan | Verified | MoveResult | int
        if abandon:
            outcome = abandon_move(spark, Lake(lake), source, target, queue, to_queue=to_queue, progress=progress)
        elif dry_run:
            progress("plan", 0, None)
            outcome = plan_move(
                spark, source, target, queue, to_queue=to_queue, drop=may_lose, leave=leave, include=states
            )
        elif verify_only:
            progress("verify", 0, None)
            outcome = verify_move(spark, Lake(lake), source, target, queue, to_queue=to_queue)
        else:
            outcome = carry(
                spark,
                Lake(lake),
                source,
                target,
                queue,
                to_queue=to_queue,
                drop=may_lose,
                leave=leave,
                include=states,
                drain_timeout=drain_timeout,
                resume_source=resume_source,
                progress=progress,
            )
    if isinstance(outcome, int):
        emit({"removed": outcome}) if as_json else console().print(f"given up: {outcome:,} copies removed")
        return
    if as_json:
        emit(outcome.as_dict())
    raise typer.Exit(0 if _shown(outcome, quiet=as_json) else 1)


def _shown(outcome: MovePlan | Verified | MoveResult, *, quiet: bool) -> bool:
    """Prints the result. Returns True if the command has succeeded."""
    from jobwire.pipeline.move.move import MoveResult
    from jobwire.pipeline.move.plan import MovePlan

    if isinstance(outcome, MovePlan):
        if not quiet:
            _show_plan(outcome)
        return outcome.possible
    if isinstance(outcome, MoveResult):
        if not quiet:
            _show_moved(outcome)
        return True
    if not quiet:
        _show_verified(outcome)
    return outcome.sound


def _show_plan(plan: MovePlan) -> None:
    from jobwire.cli.output import console, printable

    out = console()
    out.print(f"{plan.from_queue} in {plan.from_store}\n  → {plan.to_queue} in {plan.to_store}", markup=False)
    out.print(
        f"  would move: {plan.ready:,} ready, {plan.delayed:,} delayed, {counted(len(plan.schedules), 'schedule')}"
    )
    for state, count in plan.finished.items():
        out.print(f"  and {count:,} {state}")
    for state, count in plan.stays.items():
        out.print(f"  stays: {count:,} {state}")
    out.print(f"  priorities: {printable(plan.priorities)}", markup=False)
    for schedule in plan.schedules:
        out.print(f"  schedule {printable(schedule)}", markup=False)
    for schedule in plan.schedules_that_stay:
        out.print(f"  schedule that stays: {printable(schedule)}", markup=False)
    for what, count in plan.losses.items():
        out.print(f"  {counted(count, 'job', ' loses', ' lose')}: {what}")
    for note in plan.notes:
        out.print(f"  {printable(note)}", markup=False)
    for one in plan.hindrances:
        out.print(
            f"  {'✗' if one.stops else '!'} {counted(one.count, 'job')}, {one.what}: {printable(one.why)}", markup=False
        )
    out.print("possible" if plan.possible else "not possible as it is: see --drop and --leave", style="bold")


def _show_verified(verified: Verified) -> None:
    from jobwire.cli.output import console

    console().print(
        f"{verified.equal:,} equal, {verified.begun:,} begun, {verified.missing:,} missing, "
        f"{verified.changed:,} changed, {verified.out_of_order:,} out of order"
    )


def _show_moved(moved: MoveResult) -> None:
    from jobwire.cli.output import console, printable

    out = console()
    out.print(
        f"{counted(moved.moved, 'job')} moved to {moved.to_queue} in {moved.to_store}", markup=False, style="bold"
    )
    _show_verified(moved.verified)
    if moved.finished:
        out.print(f"{counted(moved.finished, 'finished job')} moved as well")
    for schedule in moved.schedules:
        out.print(f"schedule {printable(schedule)}", markup=False)
    for schedule in moved.schedules_that_stay:
        out.print(f"schedule that stays: {printable(schedule)}", markup=False)
    for state, count in moved.remaining.items():
        out.print(f"still in the source: {count:,} {state}")
    out.print(printable(moved.next_step), markup=False)
