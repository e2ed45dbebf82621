"""`jobwire pipeline work`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, Conf, Format, LakeRoot, Master, SettingsFile, settings
from jobwire.cli.commands.worker import ExecutorChoice, store_option
from jobwire.cli.durations import duration
from jobwire.cli.parameters import Json, QueueName, StoreName, Url
from jobwire.counted import counted

if TYPE_CHECKING:
    from jobwire.pipeline.work import WorkResult

WORKERS = "Workers"
_FAILURES = "4"
"""A task of a local Spark may fail so often, as one on a cluster. Spark's own limit is 1, which would end all workers
with the first process that is killed."""


def work(
    queue: QueueName,
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:OBJECT",
            help="A handler function, a dict of queues to handlers, or an app. Of a file: ./mail.py:handle, which is "
            "sent to the executors.",
            show_default=False,
        ),
    ],
    *,
    tasks: Annotated[
        int, typer.Option(metavar="N", min=1, help="The number of workers, each a Spark task.", show_default=False)
    ],
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for",
            metavar="DURATION",
            parser=duration,
            help="Work for this time, such as 30m. Without it: until no job is ready.",
            show_default=False,
        ),
    ] = None,
    py_file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="A .py or .zip file to send to the executors; may be repeated.", show_default=False
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many jobs a worker may run at the same time; 1 if not given, of an app 10.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    executor: Annotated[
        ExecutorChoice | None,
        typer.Option(
            metavar="KIND",
            help="async, thread or process; async functions run async, others in threads.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="The longest time that a run may take.", rich_help_panel=WORKERS),
    ] = None,
    shutdown_timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long running jobs may go on when the workers stop; 30 if not given.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    wait_for_store: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="How long to wait at the start for a store that does not answer yet; 0 if not given.",
            rich_help_panel=WORKERS,
        ),
    ] = None,
    url: Url = None,
    store: StoreName = None,
    lake: LakeRoot = LAKE,
    settings_file: SettingsFile = None,
    table_format: Format = "parquet",
    master: Master = None,
    conf: Conf = None,
    as_json: Json = False,
) -> None:
    """Work on a queue with N workers that run as Spark tasks, until no job is ready or for a time.

    Ctrl-C or SIGTERM: the workers finish their running jobs and end.

    A second one hands the running jobs back to the queue at once, a third one kills the tasks.

    The exit code is 1 if a worker could not start or ended with an error.
    """
    from jobwire.cli.commands.pipeline.stage import session_when_needed, staged
    from jobwire.cli.commands.pipeline.work_view import WorkView
    from jobwire.cli.output import emit
    from jobwire.cli.target import reported
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.settings import read_settings
    from jobwire.pipeline.work import work as run_workers

    options: dict[str, Any] = {
        "concurrency": concurrency,
        "executor": None if executor is None else executor.value,
        "timeout": timeout,
        "shutdown_timeout": shutdown_timeout,
        "wait_for_store": wait_for_store,
    }
    with staged(quiet=as_json) as progress, reported():
        tables = Lake(lake, table_format)
        local = f"local[{max(tasks, os.cpu_count() or 1)},{_FAILURES}]"
        result = run_workers(
            session_when_needed(master, settings(conf), progress, brief=True, local=local),
            tables,
            queue,
            target,
            store_option(url, store).get("url", url),
            tasks=tasks,
            seconds=seconds,
            files=py_file or (),
            privacy=read_settings(settings_file).privacy,
            watch=WorkView(progress, live=not as_json),
            progress=progress,
            **{name: value for name, value in options.items() if value is not None},
        )
    if as_json:
        emit(result.as_dict())
    else:
        _show(result)
    raise typer.Exit(0 if result.good else 1)


def _show(result: WorkResult) -> None:
    from jobwire.cli.output import console, printable

    out = console()
    if not result.workers:
        out.print(f"no job waits in {printable(result.queue)}", markup=False)
        return
    retried = f", {result.retried:,} to be tried again" if result.retried else ""
    out.print(
        f"{counted(result.completed, 'job')} completed, {result.failed:,} failed{retried}, "
        f"by {counted(len(result.workers), 'worker')} in {result.seconds:,.1f} s, {result.rate:,.0f} runs/s"
    )
    for kind, count in list(result.failures.items())[:10]:
        out.print(f"  {count:,} × {printable(kind)}", markup=False)
    if result.lost_workers:
        out.print(f"{counted(result.lost_workers, 'worker')} lost; jobs are recovered when their leases expire")
    if result.stopped:
        out.print("stopped before the end")
    if result.left:
        out.print(f"{counted(result.left, 'job')} left that wait or run")
    for error, count in result.errors.items():
        out.print(f"{counted(count, 'worker')}: {printable(error)}", style="red", markup=False)
