"""Options of a new job on a command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from jobwire.cli.durations import duration, moment, whole_number
from jobwire.durations import seconds_in

JOB = "The job"
FINISHED = "When it has finished"
TARGET = "Which workers, where the protocol routes jobs"
_BACKOFFS = ("fixed", "linear", "exponential")


class Mode(StrEnum):
    """The number of values of a criterion that a worker must have."""

    ANY = "any"
    ALL = "all"


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

KeepCompleted = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="When it has completed, keep so many such jobs (100), those younger than a time (7d), all, or none.",
        rich_help_panel=FINISHED,
        show_default=False,
    ),
]
KeepFailed = Annotated[
    str | None,
    typer.Option(metavar="RULE", help="The same for failed ones.", rich_help_panel=FINISHED, show_default=False),
]
ParentKey = Annotated[
    str | None,
    typer.Option(
        "--parent", metavar="QUEUE:ID", help="The job that waits for this one.", rich_help_panel=JOB, show_default=False
    ),
]
TargetServer = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Only the worker with this id.", rich_help_panel=TARGET, show_default=False),
]
TargetStack = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only workers of this stack.", rich_help_panel=TARGET, show_default=False),
]
TargetCapability = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only workers that can do this.", rich_help_panel=TARGET, show_default=False),
]
TargetRegion = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Only workers in this region.", rich_help_panel=TARGET, show_default=False),
]
TargetMode = Annotated[
    Mode,
    typer.Option(
        metavar="MODE", help="Whether any or all values of an option that is given twice count.", rich_help_panel=TARGET
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
    keep_completed: str | None = None
    keep_failed: str | None = None
    parent: str | None = None
    target: Mapping[str, Any] | None = None

    def options(self) -> dict[str, Any]:
        """Returns the keywords of `queue.add`, without those that are not given."""
        from jobwire.options import Target, Unique  # noqa: PLC0415 - only when the command runs

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
            "keep_completed": None if self.keep_completed is None else keep_of(self.keep_completed, "--keep-completed"),
            "keep_failed": None if self.keep_failed is None else keep_of(self.keep_failed, "--keep-failed"),
            "parent": None if self.parent is None else _parent(self.parent),
            "target": Target(**self.target) if self.target else None,
        }
        return {name: value for name, value in keywords.items() if value is not None}


def target_of(
    server: str | None,
    stack: Sequence[str] | None,
    capabilities: Sequence[str] | None,
    region: Sequence[str] | None,
    mode: Mode,
) -> dict[str, Any]:
    """Returns the criteria of a Target that are given, or none of them."""
    criteria = {"server": server, "stack": stack, "capabilities": capabilities, "region": region}
    given = {name: value for name, value in criteria.items() if value}
    if not given and mode is not Mode.ANY:
        raise typer.BadParameter("--target-mode needs another --target option")
    return {**given, "mode": mode.value} if given else {}


def keep_of(text: str, option: str) -> Any:
    """Returns the Keep of a text.

    >>> keep_of("100", "--keep-failed"), keep_of("7d", "--keep-failed"), keep_of("none", "--keep-failed")
    (Keep(count=100, age=None), Keep(count=None, age=604800.0), Keep(count=0, age=None))
    """
    from jobwire.options import Keep  # noqa: PLC0415 - only when the command runs

    if text in ("all", "none"):
        return Keep.ALL if text == "all" else Keep.NONE
    if (count := whole_number(text)) is not None:
        return Keep(count)
    age = seconds_in(text)
    if age is None:
        raise typer.BadParameter(f"{option}: write a number, a time such as 7d, all or none (got {text!r})")
    return Keep(age=age)


def _parent(text: str) -> Any:
    from jobwire.options import Parent  # noqa: PLC0415 - only when the command runs

    queue, _, job_id = text.partition(":")
    if not queue or not job_id:
        raise typer.BadParameter(f"--parent: write the queue and the id of a job, such as books:17 (got {text!r})")
    return Parent(job_id, queue)


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
