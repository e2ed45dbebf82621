"""`jobwire add`: adds jobs from the shell."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli import job_options as options
from jobwire.cli.exit_codes import NothingFound
from jobwire.cli.job_options import JOB, Given
from jobwire.cli.parameters import JsonLines, QueueName, StoreName, Url

if TYPE_CHECKING:
    from jobwire.model import Job
    from jobwire.options import NewJob
    from jobwire.queue import Queue

_TOGETHER = 500


def add(
    queue: QueueName,
    data: Annotated[str, typer.Argument(metavar="JSON", help="The job's data, any JSON value; - reads it from stdin.")],
    *,
    lines: Annotated[
        bool,
        typer.Option(
            "--lines", metavar="", help="With -: stdin has the data of one job in each line, and all are added."
        ),
    ] = False,
    name: options.JobName = None,
    job_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="An id of your own: a second job with it is not added.",
            rich_help_panel=JOB,
            show_default=False,
        ),
    ] = None,
    delay: options.Delay = None,
    run_at: options.RunAt = None,
    priority: options.Priority = None,
    attempts: options.Attempts = None,
    backoff: options.BackoffText = None,
    timeout: options.Timeout = None,
    unique: options.UniqueKey = None,
    unique_for: options.UniqueFor = None,
    lifo: options.Lifo = False,
    expires: options.Expires = None,
    parent: options.ParentKey = None,
    keep_completed: options.KeepCompleted = None,
    keep_failed: options.KeepFailed = None,
    target_server: options.TargetServer = None,
    target_stack: options.TargetStack = None,
    target_capability: options.TargetCapability = None,
    target_region: options.TargetRegion = None,
    target_mode: options.TargetMode = options.Mode.ANY,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:
    """Add a job to a queue and print its id. If stdout is not a terminal, print the id and nothing else."""
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask
    from jobwire.options import NewJob

    if lines and (data != "-" or job_id is not None or unique is not None):
        raise typer.BadParameter("--lines goes with - as the data, and without --id and --unique")
    target = options.target_of(target_server, target_stack, target_capability, target_region, target_mode)
    kept = (keep_completed, keep_failed)
    given = Given(
        priority, attempts, backoff, timeout, unique, unique_for, lifo, expires, *kept, parent, target
    ).options()
    more: dict[str, Any] = {
        name: value for name, value in (("id", job_id), ("delay", delay), ("run_at", run_at)) if value is not None
    }
    values = _lines() if lines else [parse(sys.stdin.read() if data == "-" else data)]
    new = [NewJob(value, name, **given, **more) for value in values]

    def show(added: Sequence[Job]) -> None:
        for one in added:
            show_added(one, delay, as_json=as_json)

    ask(queue, located(url, store), lambda opened: _add(opened, new, show), new=True)


async def _add(queue: Queue, jobs: Sequence[NewJob], show: Callable[[Sequence[Job]], None]) -> None:
    """Adds the jobs in steps and shows each step once it is done. If the reader of the output goes away, the rest is
    added without being shown. If it ends before the last step for another reason, prints how many were added."""
    from asyncio import CancelledError

    from jobwire.cli.output import remark
    from jobwire.counted import counted
    from jobwire.errors import JobwireError

    reader_gone: BrokenPipeError | None = None
    done = 0
    try:
        for start in range(0, len(jobs), _TOGETHER):
            added = await queue.add_many(jobs[start : start + _TOGETHER])
            done += len(added)
            try:
                if reader_gone is None:
                    show(added)
            except BrokenPipeError as error:
                reader_gone = error
    except (CancelledError, JobwireError):
        if done:
            remark(f"the first {done:,} of {len(jobs):,} jobs were added")
        raise
    if reader_gone is not None:
        remark(f"the reader of the output has gone; added {counted(done, 'job')}, all that were given")
        raise reader_gone


def _lines() -> list[Any]:
    """Returns the values of the lines of stdin. Raises an error before the first job is added."""
    values = [parse(line, f"line {number}") for number, line in enumerate(sys.stdin, 1) if line.strip()]
    if not values:
        raise NothingFound("stdin has no lines, so there is nothing to add")
    return values


def parse(text: str, what: str = "the job's data") -> Any:
    """Returns the value of a text of JSON."""
    from jobwire.codec import loads
    from jobwire.errors import MalformedPayload

    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of the command line that are not UTF-8
        raise MalformedPayload(f"{what} is not JSON: it is not UTF-8") from None
    try:
        return loads(text)
    except MalformedPayload as error:
        raise MalformedPayload(f"{what} is {error}") from error


def show_added(job: Job, delay: float | None, *, as_json: bool) -> None:
    """Prints a job that was added: its id alone if stdout is not a terminal."""
    from rich.text import Text

    from jobwire.cli.jobview import record
    from jobwire.cli.output import console, emit, printable, remark, say
    from jobwire.model import AddStatus

    if as_json:
        emit({**record(job), "add_status": job.add_status})
        return
    identity = (printable(job.id), "bold")
    refused = ""
    if job.add_status is AddStatus.DUPLICATE:
        refused = f"not added: job {printable(job.id)} was there first (duplicate)"
    elif job.add_status is AddStatus.THROTTLED:
        refused = "not added: the queue admits no more now (throttled)"
    if refused:
        remark(refused)
    out = console()
    if not out.is_terminal:
        if job.add_status is not AddStatus.THROTTLED:
            say(printable(job.id))
    elif not refused:
        due = f", due in {delay:g} s" if delay else ""
        kind = "" if job.name == job.queue else f" ({printable(job.name)})"
        out.print(Text.assemble("added job ", identity, f" to {printable(job.queue)}{kind}{due}"))
