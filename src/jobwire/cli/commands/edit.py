"""`jobwire edit`, `limits` and `unique`: changes to a job, to a queue's limits, and to unique keys."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.durations import duration, whole_number
from jobwire.cli.parameters import JobId, Json, QueueName, StoreName, Url

if TYPE_CHECKING:
    from jobwire.cli.steps import Step
    from jobwire.model import Limits
    from jobwire.queue import Queue


def edit(
    queue: QueueName,
    job_id: JobId,
    *,
    data: Annotated[str | None, typer.Option(metavar="JSON", help="New data.", show_default=False)] = None,
    priority: Annotated[int | None, typer.Option(metavar="N", help="Another priority.", show_default=False)] = None,
    front: Annotated[
        bool, typer.Option("--front", metavar="", help="With --priority: before the jobs that have the same.")
    ] = False,
    delay: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION", parser=duration, help="Make a delayed job due that long from now.", show_default=False
        ),
    ] = None,
    progress: Annotated[str | None, typer.Option(metavar="JSON", help="Its progress.", show_default=False)] = None,
    log: Annotated[str | None, typer.Option(metavar="LINE", help="Append to its log.", show_default=False)] = None,
    clear_log: Annotated[bool, typer.Option("--clear-log", metavar="", help="Delete its log.")] = False,
    url: Url = None,
    store: StoreName = None,
) -> None:
    """Change a job that is in the store: data, priority, delay, progress, log."""
    from jobwire.boundary import Feature
    from jobwire.cli.commands.add import parse
    from jobwire.cli.output import printable
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask
    from jobwire.cli.steps import make_changes

    new_data = None if data is None else (parse(data),)
    new_progress = None if progress is None else (parse(progress, "the progress"),)
    if front and priority is None:
        raise typer.BadParameter("--front goes with --priority")
    if not clear_log and all(one is None for one in (data, priority, delay, progress, log)):
        raise typer.BadParameter("give at least one change, such as --data or --priority")

    async def question(opened: Queue) -> list[str]:
        admin = opened.admin
        for feature, wanted in (
            (Feature.EDITS, clear_log or not all(one is None for one in (data, priority, delay))),
            (Feature.PROGRESS, progress is not None),
            (Feature.LOGS, log is not None),
        ):
            if wanted:
                opened.capabilities.require(feature)
        steps: list[Step] = []  # those first that depend on the job's state: a refusal then leaves it as it was
        if delay is not None:
            steps.append(("delay", partial(admin.change_delay, job_id, delay)))
        if priority is not None:
            steps.append(("priority", partial(admin.change_priority, job_id, priority, front=front)))
        if new_progress is not None:
            steps.append(("progress", partial(admin.update_progress, job_id, *new_progress)))
        if new_data is not None:
            steps.append(("data", partial(admin.update_data, job_id, *new_data)))
        if clear_log:
            steps.append(("log", partial(admin.clear_logs, job_id)))
        if log is not None:
            steps.append(("log", partial(admin.log, job_id, log)))
        return list(dict.fromkeys(await make_changes(steps, f"job {job_id}")))

    changed = ask(queue, located(url, store), question)
    typer.echo(f"changed {', '.join(changed)} of job {printable(job_id)}")


def limits(
    queue: QueueName,
    *,
    rate: Annotated[
        str | None,
        typer.Option(metavar="N/TIME", help="Start at most so many jobs in a time, such as 100/1m; none removes it.",
            show_default=False),
    ] = None,
    concurrency: Annotated[
        str | None,
        typer.Option(metavar="N", help="Run at most so many jobs at a time; none removes it.", show_default=False),
    ] = None,
    throttle: Annotated[
        float | None,
        typer.Option(metavar="DURATION", parser=duration, help="Start no jobs for this long; 0 ends that.",
            show_default=False),
    ] = None,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Show or set the limits that hold for all workers of a queue together."""
    from jobwire.cli.output import emit
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask
    from jobwire.cli.steps import make_changes

    wanted_rate = None if rate is None else (_rate(rate),)
    wanted_jobs = None if concurrency is None else (_number(concurrency),)

    async def question(opened: Queue) -> Limits:
        admin = opened.admin
        steps: list[Step] = []
        if wanted_jobs is not None:
            steps.append(("concurrency", partial(admin.limit_concurrency, *wanted_jobs)))
        if wanted_rate is not None:
            steps.append(("rate", partial(admin.limit_rate, *wanted_rate)))
        if throttle is not None:
            steps.append(("throttle", partial(admin.throttle, throttle)))
        await make_changes(steps, f"queue {queue}")
        return await admin.limits()

    found = ask(queue, located(url, store), question)
    per = found.rate
    if as_json:
        shown = None if per is None else {"jobs": per.jobs, "per": per.per}
        emit({"rate": shown, "concurrency": found.concurrency, "blocked_for": found.blocked_for})
        return
    typer.echo(f"rate         {'none' if per is None else f'{per.jobs} in {per.per:g} s'}")
    typer.echo(f"concurrency  {'none' if found.concurrency is None else found.concurrency}")
    if found.blocked_for:
        typer.echo(f"blocked for  {found.blocked_for:.1f} s")


def unique(
    queue: QueueName,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The unique key.", show_default=False)],
    *,
    release: Annotated[bool, typer.Option("--release", metavar="", help="Free the key before its job does.")] = False,
    url: Url = None,
    store: StoreName = None,
) -> None:
    """Print the id of the job that holds a unique key, or free the key."""
    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.output import printable
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> str | None:
        owner = await opened.admin.unique_owner(key)
        if release and owner is not None:
            await opened.admin.release_unique(key)
        return owner

    owner = ask(queue, located(url, store), question)
    if owner is None:
        raise NothingFound(f"no job of {queue} holds the key {key!r}")
    typer.echo(f"freed the key of job {printable(owner)}" if release else printable(owner))


def _rate(text: str) -> Any:
    """Returns the Rate of a text such as 100/1m, or None for none."""
    from jobwire.rate import Rate

    if text == "none":
        return None
    jobs, slash, per = text.partition("/")
    number = whole_number(jobs) if slash else None
    if number is None:
        raise typer.BadParameter(f"--rate: write a number and a time such as 100/1m, or none (got {text!r})")
    return Rate(number, per=duration(per) if not per.isalpha() else duration(f"1{per}"))


def _number(text: str) -> int | None:
    number = None if text == "none" else whole_number(text)
    if number is None and text != "none":
        raise typer.BadParameter(f"--concurrency: write a number or none (got {text!r})")
    return number
