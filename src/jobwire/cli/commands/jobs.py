"""`jobwire jobs`: the jobs of a queue in one state."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import Json, QueueName, Url
from jobwire.model import State

if TYPE_CHECKING:
    from jobwire.model import Page
    from jobwire.queue import Queue


def jobs(
    queue: QueueName,
    state: Annotated[State, typer.Option(metavar="STATE", help=f"Which jobs: {', '.join(State)}.")] = State.WAITING,
    *,
    limit: Annotated[int, typer.Option(metavar="N", help="The largest number of jobs to list.")] = 20,
    skip: Annotated[int, typer.Option(metavar="N", help="How many jobs to skip before the first one.")] = 0,
    reverse: Annotated[bool, typer.Option("--reverse", help="List in the opposite order.")] = False,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """List jobs in the order in which they would run; finished ones newest first."""
    from jobwire.cli.jobview import listing, record
    from jobwire.cli.output import console, emit, remark
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> Page:
        return await opened.jobs(state, limit=limit, skip=skip, reverse=reverse)

    page = ask(queue, url, question)
    if as_json:
        emit([record(job) for job in page])
        return
    if page:
        out = console()
        out.print(listing(page, state, fit=out.is_terminal))
    else:
        remark(f"no {state} jobs in {queue}" + (f" after the first {skip}" if skip else ""))
    if page.cursor is not None:
        shown = f"jobs {skip + 1} to {skip + limit}" if skip else f"the first {len(page)}"
        remark(f"{shown}; there are more (--limit, --skip {skip + limit})")
