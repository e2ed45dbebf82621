"""`jobwire tasks`: the tasks of an app."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.parameters import JsonLines

if TYPE_CHECKING:
    from jobwire.tasks import Task


def tasks(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:APP", help="The app, such as shop.tasks:app or ./tasks.py:app.", show_default=False
        ),
    ],
    as_json: JsonLines = False,
) -> None:
    """List the tasks of an app: their queues, parameters and limits. The store is not needed."""
    from rich.table import Table
    from rich.text import Text

    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.output import console, emit, printable
    from jobwire.cli.target import load
    from jobwire.tasks import App

    found = load(target)
    inner = getattr(found, "inner", None)  # an app for blocking code
    app = found if isinstance(found, App) else inner
    if not isinstance(app, App):
        raise typer.BadParameter(f"{target} is not an App, but of type {type(found).__name__}")
    if not app.tasks:
        raise NothingFound(f"{target} has no tasks")
    records = [_record(name, task) for name, task in app.tasks.items()]
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("task", "queue", "parameters", "options"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for one in records:
        if as_json:
            emit(one)
        limits = "  ".join(f"{key}={value}" for key, value in one["options"].items())
        table.add_row(*(Text(printable(text)) for text in (one["task"], one["queue"], one["parameters"], limits)))
    if not as_json:
        console().print(table)


def _record(name: str, task: Task[..., Any]) -> dict[str, Any]:
    import inspect

    settings = task.settings
    shown = {
        "timeout": settings.timeout,
        "rate": None if settings.rate is None else f"{settings.rate.jobs}/{settings.rate.per:g}s",
        "max_running": settings.max_running,
        "limit_by": settings.limit_by,
        **task.job_options,
    }
    return {
        "task": name,
        "queue": task.queue,
        "parameters": str(inspect.signature(task.function)),
        "executor": settings.executor,
        "options": {key: value if isinstance(value, (int, float, bool)) else _words(value)
                    for key, value in shown.items() if value is not None},
    }  # fmt: skip


def _words(value: object) -> str:
    """Returns a backoff as it is written on a command line, and other values as text."""
    from jobwire.backoff import Backoff

    if not isinstance(value, Backoff):
        return str(value)
    limits = (f" jitter {value.jitter:g}" if value.jitter else "") + (f" cap {value.cap:g}s" if value.cap else "")
    return f"{value.kind}:{value.name or f'{value.delay:g}s'}{limits}"
