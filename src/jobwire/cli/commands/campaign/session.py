"""Runs one operation on the campaigns of a database: finds the database, opens it, asks, closes it.

Exit codes: 0 done, 1 refused, 2 wrong usage, 3 the database can't be reached, 4 nothing was found.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer

from jobwire import embedded
from jobwire.campaigns import CampaignService, NotFound
from jobwire.campaigns.database import refusals
from jobwire.cli.output import remark
from jobwire.cli.session import display
from jobwire.errors import InvalidOption, StoreUnavailable

T = TypeVar("T")
VARIABLE = "JOBWIRE_CAMPAIGN_URL"
UNREACHABLE = 3
NOTHING_FOUND = 4
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Where:
    """The options that name a database and its schemas."""

    url: str | None
    schema: str | None
    queue_schema: str


def ask(where: Where, question: Callable[[CampaignService], Awaitable[T]], *, new: bool = False) -> T:
    """Opens the campaigns of a database, runs the operation on them, closes them and returns the result. Unless they
    may be `new`, missing tables are refused."""

    async def session(url: str) -> T:
        async with CampaignService(url, schema=where.schema, queue_schema=where.queue_schema) as campaigns:
            if not new:
                await campaigns.check()
            return await question(campaigns)

    with exit_codes(), refusals(), database(where.url) as url:
        return asyncio.run(session(url))


@contextmanager
def database(url: str | None) -> Generator[str]:
    """Yields the URL of the database: the given one, that of the environment, or that of an embedded server, which
    runs until the end of the block."""
    given = url if url is not None else os.environ.get(VARIABLE)
    if given is not None:
        if not given.strip():  # usually a missing secret: campaigns in a local folder would be lost with the container
            name = "--url" if url is not None else VARIABLE
            raise InvalidOption(name, given, "is empty: write a URL, or leave it out for a server in ./.jobwire")
        yield given
        return
    with embedded.postgres() as server:
        remark(f"embedded server, its data is in {display(Path(embedded.FOLDER))}")
        yield server.url


@contextmanager
def exit_codes() -> Generator[None]:
    """Ends the command with the exit code of an error, for those errors that have one of their own."""
    try:
        yield
    except StoreUnavailable as error:
        leave(str(error), UNREACHABLE)
    except NotFound as error:
        leave(str(error), NOTHING_FOUND)


def nothing(sentence: str) -> NoReturn:
    """Ends the command because there is nothing to show."""
    leave(sentence, NOTHING_FOUND)


def leave(sentence: str, code: int) -> NoReturn:
    """Prints a sentence on stderr and ends the command."""
    sys.stdout.flush()
    sys.stderr.write(f"jobwire: {sentence}\n")
    raise typer.Exit(code)


def confirm(deed: str, *, yes: bool) -> None:
    """Returns if the user agrees. `deed` is what would be done: "delete 42 rows"."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"nothing was done: there is no terminal to ask at; add --yes to {deed}")
    sys.stderr.write(f"{deed[:1].upper()}{deed[1:]}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        leave("nothing was done", 1)


async def pages(read: Callable[..., Awaitable[list[Any]]], *, id_of: str = "id", **options: Any) -> AsyncGenerator[Any]:
    """Yields the pages of a list, each read after the last id of the one before."""
    after = ""
    while rows := await read(limit=_PAGE, after=after, **options):
        yield rows
        after = getattr(rows[-1], id_of)
