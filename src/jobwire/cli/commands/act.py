"""`jobwire retry`, `remove`, `promote`, `cancel`: acts on one job, on several, or on all that match."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.filters import CHOICE, ByError, ByName, OlderThan, YoungerThan
from jobwire.cli.parameters import Json, QueueName, StoreName, Url, Yes
from jobwire.job_filters import Filters
from jobwire.model import State

if TYPE_CHECKING:
    from jobwire.cli.bulk import Act

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID", help="The ids of the jobs.", show_default=False)]
All = Annotated[
    bool, typer.Option("--all", metavar="", help="All jobs of the state.", rich_help_panel=CHOICE, show_default=False)
]
Limit = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="At most so many jobs.", rich_help_panel=CHOICE, show_default=False),
]
DryRun = Annotated[bool, typer.Option("--dry-run", metavar="", help="Show what would be done, and do nothing.")]


def _state(*allowed: State) -> typer.models.OptionInfo:
    def check(value: State) -> State:
        if value not in allowed:
            raise typer.BadParameter(f"must be {' or '.join(allowed)}")
        return value

    words = " or ".join(allowed) if len(allowed) < len(State) else ", ".join(allowed)
    return typer.Option(
        "--state", metavar="STATE", help=f"Jobs in this state: {words}.", rich_help_panel=CHOICE, callback=check
    )


def retry(
    queue: QueueName,
    ids: Ids = None,
    *,
    state: Annotated[State, _state(State.FAILED, State.COMPLETED, State.CANCELLED)] = State.FAILED,
    name: ByName = None,
    error: ByError = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    every: All = False,
    limit: Limit = None,
    reset_attempts: Annotated[
        bool, typer.Option("--reset-attempts", metavar="", help="Give the jobs all of their attempts again.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Run finished jobs again: those with these ids, or all that match."""
    from jobwire.boundary import Feature
    from jobwire.cli.bulk import Act

    if reset_attempts:
        act = Act(
            "retry", "retried", lambda opened, some: opened.admin.retry_many(some, reset_attempts=True), Feature.EDITS
        )
    else:
        act = Act("retry", "retried", lambda opened, some: opened.admin.retry_many(some))
    filters = Filters(name, error, older_than, younger_than)
    _run(act, queue, ids, state, filters, every, limit, url, store, yes=yes, dry_run=dry_run, as_json=as_json)


def remove(
    queue: QueueName,
    ids: Ids = None,
    *,
    state: Annotated[State, _state(*(one for one in State if one is not State.ACTIVE))] = State.FAILED,
    name: ByName = None,
    error: ByError = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    every: All = False,
    limit: Limit = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Delete jobs: those with these ids, or all that match."""
    from jobwire.cli.bulk import Act

    act = Act("remove", "removed", lambda opened, some: opened.admin.remove_many(some))
    filters = Filters(name, error, older_than, younger_than)
    _run(act, queue, ids, state, filters, every, limit, url, store, yes=yes, dry_run=dry_run, as_json=as_json)


def promote(
    queue: QueueName,
    ids: Ids = None,
    *,
    name: ByName = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    every: All = False,
    limit: Limit = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Let delayed jobs run now: those with these ids, or all that match."""
    from jobwire.cli.bulk import Act

    act = Act("promote", "promoted", lambda opened, some: opened.admin.promote_many(some))
    filters = Filters(name, None, older_than, younger_than)
    _run(act, queue, ids, State.DELAYED, filters, every, limit, url, store, yes=yes, dry_run=dry_run, as_json=as_json)


def cancel(
    queue: QueueName,
    ids: Ids = None,
    *,
    state: Annotated[State, _state(State.WAITING, State.DELAYED)] = State.WAITING,
    name: ByName = None,
    older_than: OlderThan = None,
    younger_than: YoungerThan = None,
    every: All = False,
    limit: Limit = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Keep waiting jobs from being run: those with these ids, or all that match. They stay, as cancelled."""
    from jobwire.boundary import Feature
    from jobwire.cli.bulk import Act

    act = Act("cancel", "cancelled", lambda opened, some: opened.admin.cancel_many(some), Feature.CANCEL)
    filters = Filters(name, None, older_than, younger_than)
    _run(act, queue, ids, state, filters, every, limit, url, store, yes=yes, dry_run=dry_run, as_json=as_json)


def _run(  # noqa: PLR0917 - what the four commands share
    act: Act,
    queue: str,
    ids: list[str] | None,
    state: State,
    filters: Filters,
    everything: bool,
    limit: int | None,
    url: str | None,
    store: str | None,
    *,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    from jobwire.cli.bulk import Choice, act_on_jobs
    from jobwire.cli.profiles import located

    choice = Choice(queue, ids or (), state, filters, everything, limit)
    act_on_jobs(act, choice, located(url, store), yes=yes, dry_run=dry_run, as_json=as_json)
