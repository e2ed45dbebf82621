"""A job as a dict of JSON values, for programs, and as a table, for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobwire.cli.output import compact, printable, printable_lines
from jobwire.look.words import ago
from jobwire.model import Job, State

STATE_STYLES = {
    State.WAITING: "yellow",
    State.DELAYED: "magenta",
    State.ACTIVE: "cyan",
    State.COMPLETED: "green",
    State.FAILED: "red",
    State.CANCELLED: "dim",
    State.PAUSED: "yellow",
    State.WAITING_CHILDREN: "blue",
}


def record(job: Job) -> dict[str, Any]:
    """Returns every public field. Times are ISO 8601 in UTC."""
    return {
        "id": job.id,
        "queue": job.queue,
        "name": job.name,
        "state": job.state.value,
        "native_state": job.native_state,
        "data": job.data,
        "priority": job.priority,
        "attempts": job.attempts,
        "attempts_made": job.attempts_made,
        "progress": job.progress,
        "result": job.result,
        "error": job.error,
        "stacktrace": list(job.stacktrace),
        "created_at": _iso(job.created_at),
        "run_at": _iso(job.run_at),
        "started_at": _iso(job.started_at),
        "finished_at": _iso(job.finished_at),
        "worker": job.worker,
        "parent": job.parent and job.parent._asdict(),
    }


def styled(state: State) -> Text:
    return Text(state.value, style=STATE_STYLES[state])


def listing(jobs: Sequence[Job], state: State, *, fit: bool) -> Table:
    """Returns a table with a row per job and a column that depends on the state. `fit` shortens long cells to the
    terminal's width."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=fit)
    table.add_column("id", no_wrap=True)
    table.add_column("name", no_wrap=True)
    table.add_column("data", ratio=1 if fit else None, no_wrap=True, overflow="ellipsis")
    heading, _ = _tale(state, None)
    table.add_column(heading, ratio=1 if fit and state.finished else None, no_wrap=True, overflow="ellipsis")
    table.add_column("runs", justify="right", no_wrap=True)
    since = "finished" if state.finished else "started" if state is State.ACTIVE else "added"
    table.add_column(since, no_wrap=True, style="dim")
    for job in jobs:
        at = {"finished": job.finished_at, "started": job.started_at}.get(since, job.created_at)
        runs = f"{job.attempts_made}/{job.attempts}"
        cells = (printable(job.id), printable(job.name), compact(job.data), _tale(state, job)[1], runs, ago(at))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def show(console: Console, job: Job, logs: Sequence[str] | None) -> None:
    """Prints the whole job, field by field, then its log and the stack of its last failure."""
    fields = Table(box=None, show_header=False, pad_edge=False)
    fields.add_column(style="dim", no_wrap=True)
    fields.add_column(overflow="fold")
    fields.add_row("job", Text.assemble((printable(job.id), "bold"), "  ", styled(job.state)))
    for label, value in _facts(job):
        fields.add_row(label, Text(value))
    console.print(fields)
    if logs:
        console.print(Text("\nlog", style="dim"))
        for line in logs:
            console.print(Text("  " + printable_lines(line).replace("\n", "\n  ")))
    if job.stacktrace:
        console.print(Text("\nlast failure", style="dim"))
        for line in printable_lines(job.stacktrace[-1].rstrip()).split("\n"):
            console.print(Text(f"  {line}"))


def _facts(job: Job) -> list[tuple[str, str]]:
    facts = [
        ("queue", printable(job.queue)),
        ("name", printable(job.name)),
        ("data", printable_lines(json.dumps(job.data, ensure_ascii=False, indent=2, default=str))),
        ("runs", f"{job.attempts_made} of {job.attempts}"),
    ]
    if job.priority:
        facts.append(("priority", str(job.priority)))
    if job.progress not in (None, 0):
        facts.append(("progress", compact(job.progress)))
    if job.result is not None or job.state is State.COMPLETED:
        facts.append(("result", compact(job.result)))
    if job.error is not None:
        facts.append(("error", printable_lines(job.error)))
    if job.worker:
        facts.append(("worker", printable(job.worker)))
    if job.parent is not None:
        facts.append(("parent", printable(f"{job.parent.queue} {job.parent.id}")))
    times = (("added", job.created_at), ("due", job.run_at), ("started", job.started_at), ("finished", job.finished_at))
    facts += [(label, _clock(at)) for label, at in times if at is not None and (label != "due" or at != job.created_at)]
    return facts


def _tale(state: State, job: Job | None) -> tuple[str, str]:
    """Returns the heading of the column that depends on the state, and the job's value in it."""
    match state:
        case State.FAILED:
            return "error", printable((job.error or "").partition("\n")[0]) if job else ""
        case State.COMPLETED:
            return "result", compact(job.result) if job else ""
        case State.DELAYED:
            return "due", ago(job.run_at) if job else ""
        case State.ACTIVE:
            return "progress", compact(job.progress) if job else ""
        case _:
            return "priority", str(job.priority) if job else ""


def _clock(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}  ({ago(at)})"


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
