"""`jobwire counts`: the number of jobs by state."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING

from jobwire.cli.parameters import Json, QueueName, Url

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobwire.model import State
    from jobwire.queue import Queue


def counts(queue: QueueName, url: Url = None, as_json: Json = False) -> None:
    """Show how many jobs of a queue are in each state."""
    from jobwire.cli.output import emit
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> Mapping[State, int]:
        return await opened.counts()

    found = ask(queue, url, question)
    if as_json:
        emit({state.value: number for state, number in found.items()})
    else:
        _show(found)


def _show(found: Mapping[State, int]) -> None:
    from rich.table import Table

    from jobwire.cli.jobview import styled
    from jobwire.cli.output import console

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for state, number in found.items():
        table.add_row(styled(state), f"{number:,}", style=None if number else "dim")
    table.add_row("all", f"{sum(found.values()):,}", style="bold")
    console().print(table)
