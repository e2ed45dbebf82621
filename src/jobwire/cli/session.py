"""Runs one operation on one queue or one store: opens it, asks, closes it."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from jobwire.boundary import Feature
from jobwire.cli.exit_codes import NothingFound, WrongUsage
from jobwire.cli.output import remark
from jobwire.connection import Connection, connect
from jobwire.errors import InvalidOption, JobwireError
from jobwire.queue import Queue

T = TypeVar("T")
_TOLD = "jobwire.cli.session.told"
_LISTING = 3.0
"""Seconds in which the queues of a store must be listed for a suggestion."""


def ask(queue: str, url: str | None, question: Callable[[Queue], Awaitable[T]], *, new: bool = False) -> T:
    """Opens the queue, runs the operation on it, closes it and returns the result.

    Unless it may be `new`, a queue that the store does not have is refused before it is opened, since opening makes it.
    """

    async def session(connection: Connection) -> T:
        if not new:
            await require_queue(connection, queue)
        opened = Queue(queue, connection)  # not yet opened: what is refused must not make the queue
        try:
            return await question(opened)
        finally:
            await opened.close()

    return ask_store(url, session)


def ask_store(url: str | None, question: Callable[[Connection], Awaitable[T]]) -> T:
    """Connects to the store, runs the operation on the connection, closes it and returns the result."""

    async def session() -> T:
        connection = store_at(url)
        try:
            await connection.open()
            tell_where(connection)
            return await question(connection)
        finally:
            await connection.close()

    return asyncio.run(session())


def store_at(url: str | None) -> Connection:
    """Returns a connection that is not yet open. Raises WrongUsage if the driver does not take the URL."""
    try:
        return connect(url)
    except InvalidOption as error:
        raise WrongUsage(str(error)) from None


async def require_queue(connection: Connection, queue: str) -> None:
    """Raises NothingFound if the store can list its queues and has none of this name. The error has the near names."""
    if not connection.backend.capabilities.has(Feature.QUEUES) or await connection.has_queue(queue):
        return
    near: list[str] = []
    try:
        async with asyncio.timeout(_LISTING):
            near = difflib.get_close_matches(queue, await connection.queues(), n=3, cutoff=0.5)
    except (TimeoutError, JobwireError):
        pass
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise NothingFound(f"there is no queue {queue!r} in {connection.address.redacted}{hint}")


@contextmanager
def ended_by_ctrl_c() -> Generator[None]:
    """Lets Ctrl-C end what is inside as if it had been done: that is how one leaves what would go on without end."""
    try:
        yield
    except KeyboardInterrupt:
        return


def tell_where(connection: Connection) -> None:
    """Prints the folder of an embedded server, since the user may not have typed one. A command that connects several
    times prints it once."""
    folder = connection.address.folder
    command = click.get_current_context(silent=True)
    told: set[Path] = set() if command is None else command.find_root().meta.setdefault(_TOLD, set())
    if connection.address.transport == "embedded" and folder is not None and folder not in told:
        told.add(folder)
        remark(f"embedded server, its data is in {display(folder)}")


def display(folder: Path) -> str:
    """Returns a folder as text, relative if it is below the current one."""
    folder = folder.absolute()
    here = Path.cwd()
    return f"./{folder.relative_to(here)}" if folder.is_relative_to(here) else str(folder)
