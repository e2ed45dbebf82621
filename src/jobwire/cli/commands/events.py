"""`jobwire events`: what happened on a queue, and what happens."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import JsonLines, QueueName, StoreName, Url, Yes

if TYPE_CHECKING:
    from jobwire.model import Event
    from jobwire.queue import Queue


def events(
    queue: QueueName,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", metavar="", help="Go on with new events until Ctrl-C.")
    ] = False,
    last: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="So many past events; 20 if not given, none with -f.", show_default=False
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="ID", help="With -f: go on after the event of this id.", show_default=False),
    ] = None,
    trim: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Delete all but about the last N events.", show_default=False),
    ] = None,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:
    """Show the last events of a queue, where the store keeps them; with -f the new ones as they happen."""
    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask, ended_by_ctrl_c

    if trim is not None:
        if follow or last is not None or since is not None:
            raise typer.BadParameter("--trim goes without -f, --last and --since")
        _trim(queue, trim, located(url, store), yes=yes, as_json=as_json)
        return
    if since is not None and (last is not None or not follow):
        raise typer.BadParameter("--since goes with -f, and without --last")
    past = last if last is not None else 0 if follow else 20
    with ended_by_ctrl_c():
        shown = ask(
            queue, located(url, store), lambda opened: _show(opened, past, since, follow=follow, as_json=as_json)
        )
        if not shown:
            raise NothingFound(f"there are no events of {queue}")


def _trim(queue: str, keep: int, where: str | None, *, yes: bool, as_json: bool) -> None:
    from jobwire.boundary import Feature
    from jobwire.cli.confirm import confirm
    from jobwire.cli.output import emit, printable, say
    from jobwire.cli.session import ask
    from jobwire.counted import counted

    async def require(opened: Queue) -> None:
        opened.capabilities.require(Feature.EVENT_CONTROL)

    async def trimmed(opened: Queue) -> int:
        return await opened.admin.trim_events(keep)

    if not yes:
        ask(queue, where, require)  # before a question that could only be answered in vain
        confirm(f"delete all but about the last {counted(keep, 'event')} of {queue}", yes=yes)
    gone = ask(queue, where, trimmed)
    emit({"deleted": gone}) if as_json else say(f"deleted {counted(gone, 'event')} of {printable(queue)}")


async def _show(queue: Queue, past: int, since: str | None, *, follow: bool, as_json: bool) -> int:
    """Prints past events, then follows. Returns how many there were."""
    from jobwire.boundary import Feature
    from jobwire.cli.exit_codes import WrongUsage

    number = 0
    if past:
        queue.capabilities.require(Feature.EVENTS)
        if not queue.capabilities.has(Feature.EVENT_CONTROL):
            raise WrongUsage(f"{queue.capabilities.protocol} keeps no past events: use -f to see those that come")
        for event in await queue.admin.last_events(past):
            _print(event, as_json=as_json)
            number, since = number + 1, event.id
    if follow:
        async for event in queue.events(since):
            _print(event, as_json=as_json)
            number += 1
    return number


def _print(event: Event, *, as_json: bool) -> None:
    from jobwire.cli.output import compact, emit, printable, say

    if as_json:
        emit(
            {
                "id": event.id,
                "kind": event.kind.value,
                "native_type": event.native_type,
                "job_id": event.job_id,
                "at": event.at.isoformat() if event.at else None,
                "data": dict(event.data),
                "result": event.result,
                "error": event.error,
            }
        )
        return
    at = f"{event.at.astimezone():%H:%M:%S}.{event.at.microsecond // 1000:03d}" if event.at else ""
    what = event.native_type if event.kind.value == "other" else event.kind.value
    about = event.error or (compact(event.result) if event.result is not None else "")
    if not about and event.kind.value in ("progress", "other"):
        about = compact(dict(event.data))
    line = (
        f"{at:12}  {printable(what):16}  {printable(event.job_id or ''):12}  {printable(about.partition(chr(10))[0])}"
    )
    say(line.rstrip())
