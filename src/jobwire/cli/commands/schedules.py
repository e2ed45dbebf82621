"""`jobwire schedules …`: repeating jobs."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli import job_options as options
from jobwire.cli.durations import duration, moment
from jobwire.cli.groups import Commands
from jobwire.cli.job_options import Given
from jobwire.cli.parameters import Json, JsonLines, QueueName, StoreName, Url, complete_queue, examples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobwire.connection import Connection
    from jobwire.model import Job, Schedule
    from jobwire.queue import Queue

RULE = "The rule"
Key = Annotated[str, typer.Argument(metavar="KEY", help="The schedule's key.", show_default=False)]

app = Commands(
    name="schedules",
    help="List, add and drop repeating jobs, or run one now.",
    epilog=examples("jobwire schedules list", "jobwire schedules add reports nightly --cron '0 3 * * *'"),
    no_args_is_help=True,
)


@app.callback()
def group() -> None: ...


@app.command(name="list", epilog=examples("jobwire schedules list reports", "jobwire schedules list --store prod"))
def list_them(
    queue: Annotated[
        str | None,
        typer.Argument(
            metavar="QUEUE", help="The queue's name; all queues without it.", show_default=False,
            autocompletion=complete_queue,
        ),
    ] = None,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:  # fmt: skip
    """List schedules with their next five runs, each in the zone of its schedule."""
    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.output import console, emit
    from jobwire.cli.profiles import located
    from jobwire.cli.scheduleview import record, show
    from jobwire.cli.session import ask_store

    found = ask_store(located(url, store), lambda connection: _read(connection, queue))
    if not found:
        raise NothingFound(f"there are no schedules in {queue or 'this store'}")
    out = console()
    for schedule in found:
        emit(record(schedule)) if as_json else show(out, schedule)


@app.command(
    epilog=examples(
        "jobwire schedules add reports nightly --cron '0 3 * * *' --tz Europe/Berlin",
        """jobwire schedules add emails digest --every 15m --data '{"to": "all"}'""",
    )
)
def add(
    queue: QueueName,
    key: Key,
    *,
    cron: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Run at these times: '0 3 * * *'.", rich_help_panel=RULE,
            show_default=False),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(metavar="DURATION", parser=duration, help="Run at this interval: 15m.", rich_help_panel=RULE,
            show_default=False),
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="The zone of the cron pattern, such as Europe/Berlin.",
            rich_help_panel=RULE, show_default=False),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="The number of runs after which it ends.", rich_help_panel=RULE,
            show_default=False)
    ] = None,
    start_at: Annotated[
        datetime | None,
        typer.Option(metavar="TIME", parser=moment, help="No run before this time.", rich_help_panel=RULE,
            show_default=False),
    ] = None,
    end_at: Annotated[
        datetime | None,
        typer.Option(metavar="TIME", parser=moment, help="No run after this time.", rich_help_panel=RULE,
            show_default=False),
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="JSON", help="The data of its jobs.", rich_help_panel=options.JOB,
            show_default=False)
    ] = None,
    name: options.JobName = None,
    priority: options.Priority = None,
    attempts: options.Attempts = None,
    backoff: options.BackoffText = None,
    timeout: options.Timeout = None,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Add a schedule under a key, or replace the one that has it."""
    from jobwire.cli.commands.add import parse
    from jobwire.cli.output import console, emit
    from jobwire.cli.profiles import located
    from jobwire.cli.scheduleview import record, show
    from jobwire.cli.session import ask
    from jobwire.options import NO_DATA

    if (cron is None) == (every is None):
        raise typer.BadParameter("give either --cron or --every")
    value = NO_DATA if data is None else parse(data)
    given = Given(priority, attempts, backoff, timeout).options()

    async def question(opened: Queue) -> Schedule:
        return await opened.schedule(
            key, every=every, cron=cron, tz=tz, name=name, data=value, limit=limit, start_at=start_at, end_at=end_at,
            **given,
        )  # fmt: skip

    made = ask(queue, located(url, store), question, new=True)
    emit(record(made)) if as_json else show(console(), made)


@app.command(epilog=examples("jobwire schedules drop reports nightly"))
def drop(queue: QueueName, key: Key, url: Url = None, store: StoreName = None) -> None:
    """Stop a schedule. Jobs that it has added stay."""
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> None:
        if not await opened.unschedule(key):
            await _find(opened, key)

    ask(queue, located(url, store), question)
    typer.echo(f"dropped schedule {key or repr(key)} of {queue}")


@app.command(epilog=examples("jobwire schedules run reports nightly"))
def run(queue: QueueName, key: Key, url: Url = None, store: StoreName = None, as_json: Json = False) -> None:
    """Add a job now with the name, data and options of a schedule, whose own runs stay as they are."""
    from jobwire.boundary import Feature
    from jobwire.cli.commands.add import show_added
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> Job:
        schedule = await _find(opened, key)
        part = opened.capabilities.part(opened.connection.backend.schedules, Feature.SCHEDULES)
        return await opened.add_job(part.job_of(schedule))

    show_added(ask(queue, located(url, store), question), None, as_json=as_json)


async def _read(connection: Connection, queue: str | None) -> Sequence[Schedule]:
    """Returns the schedules of one queue, or of all. Opens no Queue, which would register it."""
    from jobwire.boundary import Feature
    from jobwire.cli.session import require_queue

    if queue is not None:
        await require_queue(connection, queue)
    backend = connection.backend
    part = backend.capabilities.part(backend.schedules, Feature.SCHEDULES)
    names = [queue] if queue is not None else await connection.queues()
    return [schedule for name in names for schedule in await part.schedules(name)]


async def _find(queue: Queue, key: str) -> Schedule:
    """Returns the schedule of a key. Raises NothingFound with the near keys."""
    import difflib

    from jobwire.cli.exit_codes import NothingFound

    known = {schedule.key: schedule for schedule in await queue.schedules()}
    if key in known:
        return known[key]
    near = difflib.get_close_matches(key, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise NothingFound(f"queue {queue.name!r} has no schedule {key!r}{hint}")
