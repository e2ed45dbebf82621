"""`jobwire add`: adds a job from the shell."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.parameters import Json, QueueName, Url

if TYPE_CHECKING:
    from jobwire.model import Job
    from jobwire.queue import Queue

JOB = "The job"


def add(
    queue: QueueName,
    data: Annotated[str, typer.Argument(metavar="JSON", help="The job's data, any JSON value; - reads it from stdin.")],
    *,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The kind of job; the queue's name if not given.", rich_help_panel=JOB),
    ] = None,
    job_id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="An id of your own: a second job with it is not added.", rich_help_panel=JOB
        ),
    ] = None,
    delay: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Seconds until it may run.", rich_help_panel=JOB)
    ] = None,
    priority: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="The protocol's own number; whether lower or higher runs first is the protocol's, too.",
            rich_help_panel=JOB,
        ),
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many runs it may have in all, if it fails.", rich_help_panel=JOB),
    ] = None,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Add one job to a queue and print its id."""
    from jobwire.cli.output import emit
    from jobwire.cli.session import ask

    value = parse(data)

    async def question(opened: Queue) -> Job:
        return await opened.add(value, name=name, id=job_id, delay=delay, priority=priority, attempts=attempts)

    added = ask(queue, url, question)
    if as_json:
        from jobwire.cli.jobview import record

        emit({**record(added), "add_status": added.add_status})
    else:
        _say(added, delay)


def parse(text: str) -> Any:
    """Returns the value of a JSON argument. `-` stands for stdin."""
    from jobwire.codec import loads
    from jobwire.errors import MalformedPayload

    if text == "-":
        text = sys.stdin.read()
    try:
        return loads(text)
    except MalformedPayload as error:
        raise MalformedPayload(f"the job's data is {error}") from error


def _say(job: Job, delay: float | None) -> None:
    from rich.text import Text

    from jobwire.cli.output import console, printable
    from jobwire.model import AddStatus

    identity = (printable(job.id), "bold")
    if job.add_status is AddStatus.DUPLICATE:
        line = Text.assemble("not added: job ", identity, " was there first (duplicate)")
    elif job.add_status is AddStatus.THROTTLED:
        line = Text.assemble("not added: the queue admits no more now (throttled)")
    else:
        due = f", due in {delay:g} s" if delay else ""
        kind = "" if job.name == job.queue else f" ({printable(job.name)})"
        line = Text.assemble("added job ", identity, f" to {printable(job.queue)}{kind}{due}")
    console().print(line)
