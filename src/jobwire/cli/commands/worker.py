"""`jobwire worker`: a worker as a process of its own, or as several."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.durations import duration
from jobwire.cli.parameters import Json, StoreName, Url
from jobwire.cli.supervision import Supervision

if TYPE_CHECKING:
    from jobwire.cli.listening import Listening
    from jobwire.worker import Worker

HANDLER = "For handlers and apps"
PROCESSES = "Processes"


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
            help="A Worker, a handler function together with --queue, a dict of queues to handlers, or an app. "
            "Of a file: ./mail.py:handle.",
            show_default=False,
        ),
    ],
    *,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="The queue that the handler works on. Of a dict or an app: work on this queue only; may be repeated.",
            rich_help_panel=HANDLER,
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many jobs may run at the same time; 1 if not given, of an app 10.",
            rich_help_panel=HANDLER,
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
        typer.Option(
            metavar="DURATION", parser=duration, help="The longest time that a run may take.", rich_help_panel=HANDLER
        ),
    ] = None,
    shutdown_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION",
            parser=duration,
            help="How long running jobs may go on after SIGTERM; 30 if not given.",
            rich_help_panel=HANDLER,
        ),
    ] = None,
    wait_for_store: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION",
            parser=duration,
            help="How long to wait at the start for a store that does not answer yet; 0 if not given.",
            rich_help_panel=HANDLER,
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Run the worker in so many processes. One that dies is replaced.",
            rich_help_panel=PROCESSES,
        ),
    ] = None,
    reload: Annotated[
        bool,
        typer.Option(
            "--reload", metavar="", help="Restart when a .py file changes, for development.", rich_help_panel=PROCESSES
        ),
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve /metrics, /ready and /live over HTTP, on loopback if no host is given. "
            "Further processes take the ports that follow.",
        ),
    ] = None,
    burst: Annotated[bool, typer.Option("--burst", metavar="", help="Stop when no job is ready any more.")] = False,
    supervised: Annotated[str | None, typer.Option(hidden=True)] = None,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Work on queues until SIGTERM or Ctrl-C, then finish the running jobs and exit.

    A second signal hands the running jobs back to the queue at once.
    """
    options = {
        "url": url,
        "concurrency": concurrency,
        "executor": executor.value if executor is not None else None,
        "timeout": timeout,
        "shutdown_timeout": shutdown_timeout,
        "wait_for_store": wait_for_store,
    }
    given = {name: value for name, value in options.items() if value is not None}
    endpoint = None if listen is None else _listening(listen, processes or 1)
    if (processes or reload) and supervised is None:
        given |= (
            {} if store is None else {"store": store}
        )  # not its URL, whose secrets all could see in a list of processes
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
        flags += [*(f"--queue={name}" for name in queue or ()), *(["--burst"] if burst else [])]
        flags += [] if endpoint is None else [f"--listen={endpoint}"]
        _supervise([target, *flags, *(["--json"] if as_json else [])], processes or 1, reload=reload, as_json=as_json)
    else:
        given |= store_option(url, store)
        supervision = None if supervised is None else Supervision.parse(supervised)
        _work(target, queue or [], given, burst=burst, supervision=supervision, endpoint=endpoint, as_json=as_json)


def _listening(value: str, processes: int) -> Listening:
    from jobwire.cli.listening import Listening

    found = Listening.parse(value)
    if found.port + processes - 1 > 65535:
        raise typer.BadParameter(f"{processes} processes need a port each, and there are none beyond 65535")
    return found


def store_option(url: str | None, store: str | None) -> dict[str, Any]:
    """Returns the URL of the store that --store names. A store that the environment or the file names is the default of
    queues and apps that have no URL of their own."""
    import os

    from jobwire.cli.profiles import located

    where = located(url, store)
    if where is None or where == url:
        return {}
    if store is not None:
        return {"url": where}
    os.environ["JOBWIRE_URL"] = where
    os.environ.pop("JOBWIRE_STORE", None)
    return {}


def _work(
    target: str,
    queues: list[str],
    options: dict[str, Any],
    *,
    burst: bool,
    supervision: Supervision | None,
    endpoint: Listening | None,
    as_json: bool,
) -> None:
    import asyncio
    import gc

    from jobwire.cli.logs import set_up
    from jobwire.cli.make_worker import make_worker
    from jobwire.cli.session import tell_where

    if supervision is not None:
        supervision.keep_to_itself()
        endpoint = None if endpoint is None else endpoint.next(supervision.number - 1)
    worker = make_worker(target, queues, options)
    if supervision is not None and supervision.of > 1 and worker.has_given_id:
        raise typer.BadParameter(
            f"{target} has a worker_id of its own, {worker.id!r}, which {supervision.of} processes can't share"
        )
    set_up(worker.id, as_json=as_json)
    tell_where(worker.connection)
    gc.collect()
    gc.freeze()  # imported modules stay; without this each full garbage collection would delay all jobs by 10 to 30 ms
    asyncio.run(_run(worker, supervision, endpoint, burst=burst))


async def _run(worker: Worker, supervision: Supervision | None, endpoint: Listening | None, *, burst: bool) -> None:
    import os

    from jobwire.cli.leaving import leave_soon
    from jobwire.cli.listening import served
    from jobwire.cli.service_manager import ServiceManager
    from jobwire.cli.service_report import reported
    from jobwire.cli.supervised import manager_of, obey

    if supervision is None:
        manager = ServiceManager.from_environment(os.environ)
    else:
        manager = manager_of(supervision)
        obey(supervision.pipe, worker)
    async with served(worker, endpoint), reported(worker, manager):
        if burst:
            await worker.run_until_idle(signals=supervision is None)
        else:
            await worker.run(signals=supervision is None)
    leave_soon()


def _supervise(arguments: list[str], processes: int, *, reload: bool, as_json: bool) -> None:
    import asyncio
    import os
    from pathlib import Path

    from jobwire.cli.logs import set_up
    from jobwire.cli.service_manager import ServiceManager
    from jobwire.cli.source_files import SourceFiles
    from jobwire.cli.supervisor import Supervisor, own_command

    set_up(f"supervisor-{os.getpid()}", as_json=as_json)
    module = arguments[0].rpartition(":")[0]
    folders = [Path.cwd(), *([Path(module).parent] if module.endswith(".py") else [])]
    burst = "--burst" in arguments

    async def run() -> int:
        changes = SourceFiles(folders) if reload else None
        manager = ServiceManager.from_environment(os.environ)
        command = own_command(["worker", *arguments])
        return await Supervisor(command, processes, burst=burst, changes=changes, manager=manager).run()

    if code := asyncio.run(run()):
        raise typer.Exit(code)
