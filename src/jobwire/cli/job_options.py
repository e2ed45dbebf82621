"""Options of a new job on a command line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from jobwire.cli.durations import duration, moment

JOB = "The job"
_BACKOFFS = ("fixed", "linear", "exponential")

JobName = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="The kind of job; the queue's name if not given.", rich_help_panel=JOB,
        show_default=False,
    ),
]  # fmt: skip
Priority = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="The protocol's own number; whether lower or higher runs first is the protocol's, too.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="How many runs it may have in all, if it fails.", rich_help_panel=JOB, show_default=False
    ),
]
BackoffText = Annotated[
    str | None,
    typer.Option(
        "--backoff",
        metavar="KIND:TIME",
        help="The wait before the next attempt: fixed:10s, linear:5s, exponential:1s, or custom:NAME.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        metavar="DURATION",
        parser=duration,
        help="The longest time that a run may take.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]
Delay = Annotated[
    float | None,
    typer.Option(
        metavar="DURATION",
        parser=duration,
        help="Time until it may run: seconds, or 10m, 2h, 1d.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]
RunAt = Annotated[
    datetime | None,
    typer.Option(
        metavar="TIME",
        parser=moment,
        help="When it may run, such as 2030-01-31T12:00Z; without a zone in the local one.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]
UniqueKey = Annotated[
    str | None,
    typer.Option(
        "--unique",
        metavar="KEY",
        help="Add it only if no job with this key is unfinished.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]
UniqueFor = Annotated[
    float | None,
    typer.Option(
        "--unique-for",
        metavar="DURATION",
        parser=duration,
        help="Together with --unique: how long the key stays taken.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]
Lifo = Annotated[
    bool, typer.Option("--lifo", metavar="", help="Run it before the jobs that wait already.", rich_help_panel=JOB)
]
Expires = Annotated[
    float | None,
    typer.Option(
        metavar="DURATION",
        parser=duration,
        help="How long it may wait before it is given up.",
        rich_help_panel=JOB,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Given:
    """Options that a command line gives to a job. None means the protocol's default."""

    priority: int | None = None
    attempts: int | None = None
    backoff: str | None = None
    timeout: float | None = None
    unique: str | None = None
    unique_for: float | None = None
    lifo: bool = False
    expires: float | None = None

    def options(self) -> dict[str, Any]:
        """Returns the keywords of `queue.add`, without those that are not given."""
        from jobwire.options import Unique  # noqa: PLC0415 - only when the command runs

        if self.unique_for is not None and self.unique is None:
            raise typer.BadParameter("--unique-for needs --unique")
        keywords: dict[str, Any] = {
            "priority": self.priority,
            "attempts": self.attempts,
            "backoff": None if self.backoff is None else backoff_of(self.backoff),
            "timeout": self.timeout,
            "unique": None if self.unique is None else Unique(self.unique, ttl=self.unique_for),
            "lifo": self.lifo or None,
            "expires": self.expires,
        }
        return {name: value for name, value in keywords.items() if value is not None}


def backoff_of(text: str) -> Any:
    """Returns the Backoff of a text.

    >>> backoff_of("exponential:2s")
    Backoff(kind='exponential', delay=2.0, jitter=0.0, cap=None, name='')
    """
    from jobwire.backoff import Backoff  # noqa: PLC0415 - only when the command runs

    kind, colon, rest = text.partition(":")
    if colon and kind == "custom" and rest:
        return Backoff.custom(rest)
    if not colon or kind not in _BACKOFFS:
        raise typer.BadParameter(f"--backoff: write fixed:10s, linear:5s, exponential:1s or custom:NAME (got {text!r})")
    return getattr(Backoff, kind)(duration(rest))
