"""`jobwire jobs`: the jobs of a queue in one state."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.filters import CHOICE, ByError, ByName, OlderThan, YoungerThan
from jobwire.cli.parameters import JsonLines, QueueName, StoreName, Url
from jobwire.job_filters import Filters
from jobwire.model import State

if TYPE_CHECKING:
    from jobwire.model import Page
    from jobwire.queue import Queue


def jobs(
    queue: QueueName,
    state: Annotated[
        State, typer.Option(metavar="STATE", help=f"Which jobs: {', '.join(State)}.", rich_help_panel=CHOICE)
    ] = State.WAITING,
    *,
    name: ByName = None,
    error: ByError = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The largest number of jobs to list.")] = 20,
    skip: Annotated[int, typer.Option(metavar="N", min=0, help="How many jobs to skip before the first one.")] = 0,
    reverse: Annotated[bool, typer.Option("--reverse", metavar="", help="List in the opposite order.")] = False,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:
    """List jobs in the order in which they would run; finished ones newest first."""
    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.jobview import listing, record
    from jobwire.cli.output import console, emit, remark
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    filters = Filters(name, error, older_than, younger_than)
    page = ask(queue, located(url, store), lambda opened: _read(opened, state, filters, limit, skip, reverse=reverse))
    if not page:
        matching = " that match" if filters else ""
        raise NothingFound(
            f"there are no {state} jobs{matching} in {queue}" + (f" after the first {skip}" if skip else "")
        )
    if as_json:
        for job in page:
            emit(record(job))
    else:
        out = console()
        out.print(listing(page, state, fit=out.is_terminal))
    if page.cursor is not None:
        shown = f"jobs {skip + 1} to {skip + len(page)}" if skip else f"the first {len(page)}"
        remark(f"{shown}; there are more (--limit, --skip {skip + len(page)})")


async def _read(queue: Queue, state: State, filters: Filters, limit: int, skip: int, *, reverse: bool) -> Page:
    """Returns the jobs that match. The page has a cursor if there are more."""
    from jobwire.model import Page

    if not filters:
        page = await queue.jobs(state, limit=limit, skip=skip, reverse=reverse)
        if page.cursor is not None and not await queue.jobs(state, limit=1, cursor=page.cursor, reverse=reverse):
            page.cursor = None  # some stores give a full page a cursor without looking for a next one
        return page
    page, passed = Page(), 0
    async for job in queue.iter_jobs(state, reverse=reverse):
        if not filters.match(job):
            continue
        if passed < skip:
            passed += 1
        elif len(page) < limit:
            page.append(job)
        else:
            page.cursor = job.id
            break
    return page
