"""`jobwire top`: the queues of a store, live."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import Every, JsonLines, StoreName, Url, complete_queue

if TYPE_CHECKING:
    from jobwire.cli.topview import Watched
    from jobwire.connection import Connection


def top(
    queue: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUEUE", help="Only these queues.", show_default=False, autocompletion=complete_queue),
    ] = None,
    *,
    every: Every = 1.0,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:
    """Watch the queues of a store: jobs in and out per second, failures, the oldest waiting job, workers.

    Ends with q or Ctrl-C. If stdout is not a terminal, prints one frame.

    Rates are the differences of two counts: jobs that are deleted as soon as they have finished are not in them.

    "oldest" is how long the oldest waiting job has waited so far. A narrow terminal shows fewer columns.
    """
    from jobwire.cli.output import console
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask_store, ended_by_ctrl_c

    live = console().is_terminal and not as_json
    with ended_by_ctrl_c():
        ask_store(
            located(url, store),
            lambda connection: _run(connection, queue or [], max(0.1, every), live=live, as_json=as_json),
        )


async def _run(connection: Connection, queues: list[str], every: float, *, live: bool, as_json: bool) -> None:
    import asyncio

    from jobwire.cli.output import console, emit
    from jobwire.cli.session import require_queue
    from jobwire.cli.topview import Watch, frame, record

    for queue in queues:
        await require_queue(connection, queue)
    watch = Watch(connection, queues)
    if live:
        await _live(watch, every)
        return
    await watch.look()
    await asyncio.sleep(every)
    seen: list[Watched] = await watch.look()
    if as_json:
        for one in seen:
            emit(record(one))
    else:
        console().print(frame(seen))


async def _live(watch: object, every: float) -> None:
    """Draws frames in place until q is pressed."""
    import asyncio
    import contextlib

    from rich.live import Live

    from jobwire.cli.keyboard import key_pressed
    from jobwire.cli.output import console
    from jobwire.cli.topview import Watch, frame

    assert isinstance(watch, Watch)  # noqa: S101 - imported here only
    with key_pressed("q") as left, Live(console=console(), screen=True, auto_refresh=False) as display:
        while not left.is_set():
            display.update(frame(await watch.look(), title=watch.title), refresh=True)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(left.wait(), every)
