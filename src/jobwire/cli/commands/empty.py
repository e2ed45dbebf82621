"""`jobwire drain`, `clean` and `obliterate`: delete many jobs of a queue in the store, without reading them."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.durations import duration
from jobwire.cli.parameters import Json, QueueName, StoreName, Url, Yes
from jobwire.model import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobwire.queue import Queue


def drain(
    queue: QueueName,
    *,
    delayed: Annotated[bool, typer.Option("--delayed", metavar="", help="Delete the delayed jobs, too.")] = False,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
) -> None:
    """Delete the waiting jobs of a queue. Running and finished ones stay."""
    from jobwire.cli.confirm import confirm
    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.output import printable
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask
    from jobwire.counted import counted

    where = located(url, store)
    states = (State.WAITING, State.PAUSED, *((State.DELAYED,) if delayed else ()))
    number = sum(_counts(queue, where).get(state, 0) for state in states)
    words = "waiting and delayed job" if delayed else "waiting job"
    if not number:
        raise NothingFound(f"there are no {words}s in {queue}")
    confirm(f"delete {counted(number, words)} of {queue}", yes=yes)

    async def question(opened: Queue) -> int:
        before = await opened.counts()
        await opened.admin.drain(delayed=delayed)
        after = await opened.counts()
        return sum(max(0, before.get(state, 0) - after.get(state, 0)) for state in states)

    typer.echo(f"deleted {counted(ask(queue, where, question), words)} of {printable(queue)}")


def clean(
    queue: QueueName,
    *,
    state: Annotated[
        State, typer.Option(metavar="STATE", help="Jobs in this state, such as completed or failed.")
    ] = State.COMPLETED,
    older_than: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=duration,
            help="Jobs that have been in the state for longer, such as 7d; 0 means all.",
            show_default=False,
        ),
    ],
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="At most so many; 0 means all.")] = 0,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Delete old jobs that are in one state, the completed ones if not said otherwise."""
    from jobwire.cli.confirm import confirm
    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.output import emit
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask
    from jobwire.counted import counted
    from jobwire.look.words import spoken

    where = located(url, store)
    number = _counts(queue, where).get(state, 0)
    if not number:
        raise NothingFound(f"there are no {state} jobs in {queue}")
    old = f" that are older than {spoken(older_than)}" if older_than else ""
    most = f"up to {limit:,} of " if limit else "those of " if older_than else ""
    confirm(f"delete {most}the {counted(number, f'{state} job')} of {queue}{old}", yes=yes)

    async def question(opened: Queue) -> Sequence[str]:
        return await opened.admin.clean(state, older_than=older_than, limit=limit)

    gone = len(ask(queue, where, question))
    if as_json:
        emit({"deleted": gone})
    elif gone:
        typer.echo(f"deleted {counted(gone, f'{state} job')} of {queue}")
    if not gone:
        raise NothingFound(f"there are no {state} jobs in {queue}{old}")


def obliterate(
    queue: QueueName,
    *,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Delete running jobs, too.")] = False,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
) -> None:
    """Delete a queue and everything in it: jobs, logs, events, schedules. Refused while jobs run, unless forced."""
    from jobwire.cli.confirm import confirm
    from jobwire.cli.output import printable
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask
    from jobwire.counted import counted

    where = located(url, store)
    number = sum(_counts(queue, where).values())
    confirm(f"delete the queue {queue} with {counted(number, 'job')}", yes=yes)

    async def question(opened: Queue) -> int:
        before = await opened.counts()
        await opened.admin.obliterate(force=force)
        return sum(before.values())

    typer.echo(f"deleted the queue {printable(queue)} with {counted(ask(queue, where, question), 'job')}")


def _counts(queue: str, where: str | None) -> Mapping[State, int]:
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> Mapping[State, int]:
        return await opened.counts()

    return ask(queue, where, question)
