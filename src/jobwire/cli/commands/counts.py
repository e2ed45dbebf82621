"""`jobwire counts`: the number of jobs by state."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import Every, Json, QueueName, StoreName, Url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from jobwire.model import State
    from jobwire.queue import Queue


def counts(
    queue: QueueName,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", metavar="", help="Go on counting until Ctrl-C.")] = False,
    every: Every = 1.0,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Show how many jobs of a queue are in each state."""
    from jobwire.cli.output import console, emit
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask, ended_by_ctrl_c

    where = located(url, store)
    if watch:
        with ended_by_ctrl_c():
            ask(queue, where, lambda opened: _watch(opened, every, as_json=as_json))
        return

    async def question(opened: Queue) -> Mapping[State, int]:
        return await opened.counts()

    found = ask(queue, where, question)
    if as_json:
        emit({state.value: number for state, number in found.items()})
    else:
        console().print(_table(found))


async def _watch(queue: Queue, every: float, *, as_json: bool) -> None:
    """Shows the counts again and again: in place at a terminal, else a line each time."""
    import asyncio
    from datetime import UTC, datetime

    from jobwire.cli.output import console, emit, say
    from jobwire.cli.output import live as live_display

    pause = max(0.05, every)
    if not as_json and console().is_terminal:
        with live_display() as display:
            while True:
                display.update(_table(await queue.counts()), refresh=True)
                await asyncio.sleep(pause)
    while True:
        found = await queue.counts()
        if as_json:
            emit({"at": datetime.now(UTC).isoformat(), **{state.value: number for state, number in found.items()}})
        else:
            numbers = "  ".join(f"{state.value}={number}" for state, number in found.items())
            say(f"{datetime.now().astimezone():%H:%M:%S}  {numbers}")
        await asyncio.sleep(pause)


def _table(found: Mapping[State, int]) -> Table:
    from rich.table import Table

    from jobwire.cli.jobview import styled

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for state, number in found.items():
        table.add_row(styled(state), f"{number:,}", style=None if number else "dim")
    table.add_row("all", f"{sum(found.values()):,}", style="bold")
    return table
