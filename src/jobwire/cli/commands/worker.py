"""`jobwire worker`: a worker as a process of its own."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.parameters import Json, Url

if TYPE_CHECKING:
    from jobwire.worker import Worker

HANDLER = "For a handler function"


class ExecutorChoice(StrEnum):
    """The executor that a handler runs in."""

    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"


def worker(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:OBJECT",
            help="A Worker, or a handler function together with --queue. Of a file: ./mail.py:handle.",
            show_default=False,
        ),
    ],
    *,
    queue: Annotated[
        str | None, typer.Option(metavar="NAME", help="The queue that the handler works on.", rich_help_panel=HANDLER)
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many jobs may run at the same time; 1 if not given.", rich_help_panel=HANDLER
        ),
    ] = None,
    executor: Annotated[
        ExecutorChoice | None,
        typer.Option(
            metavar="KIND",
            help="async, thread or process; async functions run async, others in threads.",
            rich_help_panel=HANDLER,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="The longest time that a run may take.", rich_help_panel=HANDLER),
    ] = None,
    shutdown_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long running jobs may go on after SIGTERM; 30 if not given.",
            rich_help_panel=HANDLER,
        ),
    ] = None,
    wait_for_store: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long to wait at the start for a store that does not answer yet; 0 if not given.",
            rich_help_panel=HANDLER,
        ),
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Work on a queue until SIGTERM or Ctrl-C, then finish the running jobs and exit.

    A second signal hands the running jobs back to the queue at once.
    """
    import asyncio
    import gc

    from jobwire.cli.logs import set_up
    from jobwire.cli.session import tell_where

    options = {
        "queue": queue,
        "url": url,
        "concurrency": concurrency,
        "executor": executor.value if executor is not None else None,
        "timeout": timeout,
        "shutdown_timeout": shutdown_timeout,
        "wait_for_store": wait_for_store,
    }
    hired = hire(target, {name: value for name, value in options.items() if value is not None})
    set_up(hired.id, as_json=as_json)
    tell_where(hired.connection)
    gc.collect()
    gc.freeze()  # imported modules stay; without this each full garbage collection would delay all jobs by 10 to 30 ms
    asyncio.run(_work(hired))


async def _work(worker: Worker) -> None:
    from jobwire.cli.leaving import leave_soon

    await worker.run()
    leave_soon()


def hire(target: str, options: dict[str, Any]) -> Worker:
    """Returns the worker that a command line describes."""
    from jobwire.cli.logs import JobLog
    from jobwire.cli.target import load
    from jobwire.worker import Worker

    found = load(target)
    if isinstance(found, Worker):
        if options:
            flag = "--" + next(iter(options)).replace("_", "-")
            raise typer.BadParameter(f"{target} is a Worker, which has options of its own; leave out {flag}")
        return found
    if not callable(found):
        raise typer.BadParameter(f"{target} is neither a Worker nor a function, but of type {type(found).__name__}")
    if "queue" not in options:
        raise typer.BadParameter(f"{target} is a handler: name its queue with --queue")
    return Worker(handler=found, observers=[JobLog()], **options)
