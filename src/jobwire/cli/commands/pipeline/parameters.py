"""Arguments and options that the pipeline's commands share."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

Stores = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[URL]...",
        help="The store of the queues, such as bullmq+redis://host:6379/0, or the campaigns' database, "
        "postgresql://host/app. Without one: JOBWIRE_URL, else ./.jobwire.",
        show_default=False,
    ),
]
Queues = Annotated[
    list[str] | None,
    typer.Option("--queue", metavar="NAME", help="Only this queue; may be repeated. Default: all.", show_default=False),
]
Parts = Annotated[
    int | None,
    typer.Option(
        "--parts",
        metavar="N",
        help="About how many tasks read a store. Default: 8. Small queues share one, large ones are divided.",
        min=1,
        show_default=False,
    ),
]
OneQueue = Annotated[str, typer.Option("--queue", metavar="NAME", help="The queue's name.", show_default=False)]
LakeRoot = Annotated[str, typer.Option("--lake", metavar="FOLDER", help="Where the tables are kept.")]
LAKE = ".jobwire/lake"
Format = Annotated[str, typer.Option("--format", metavar="NAME", help="The tables' format: parquet, delta or iceberg.")]
Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Where Spark runs: local[*], spark://…, k8s://…, yarn, or sc://… for Spark Connect.",
        show_default=False,
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated.", show_default=False),
]

SettingsFile = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="A TOML file with the rules of privacy, targets and tenants. Default: the nearest jobwire.toml.",
        show_default=False,
    ),
]


FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="WHAT",
        help="quality: end with exit code 5 if a check of data quality has failed. The work is done all the same.",
        show_default=False,
    ),
]


def fails_on_quality(given: str | None) -> bool:
    """Returns whether failed checks of data quality are to be an error."""
    if given not in (None, "quality"):
        raise typer.BadParameter(f"--fail-on: write quality (got {given!r})")
    return given is not None


def settings(conf: list[str] | None) -> dict[str, str]:
    """Returns Spark's settings from the command line."""
    return pairs("--conf", conf)


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """Returns the values of an option of the form KEY=VALUE."""
    wrong = [one for one in given or () if "=" not in one]
    if wrong:
        raise typer.BadParameter(f"{option}: write KEY=VALUE (got {wrong[0]!r})")
    return dict(one.split("=", 1) for one in given or ())


def given_stores(stores: Sequence[str] | None) -> Sequence[str]:
    """Returns the URLs of a command line, or that of the default store. Raises WrongUsage for one that can't be
    understood."""
    from jobwire import urls
    from jobwire.campaigns.addresses import is_database
    from jobwire.cli.profiles import understood

    for one in stores or [None]:
        if one is None or not is_database(one):
            understood(one)
    return stores or [urls.default_url()]


def period(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Returns the times of --from and --to."""
    start = None if since is None else moment("--from", since)
    end = None if until is None else moment("--to", until)
    if start is not None and end is not None and end <= start:
        raise typer.BadParameter(f"--to: write a day after that of --from (got {until!r})")
    return start, end


def moment(option: str, text: str) -> datetime:
    """Returns a time from the command line. A day alone means its start in UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: write a day or a time, such as 2026-01-31 (got {text!r})") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
