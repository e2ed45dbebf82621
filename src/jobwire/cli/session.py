"""Runs one operation on one queue: opens it, asks, closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from jobwire.cli.output import remark
from jobwire.connection import Connection
from jobwire.queue import Queue

T = TypeVar("T")


def ask(queue: str, url: str | None, question: Callable[[Queue], Awaitable[T]]) -> T:
    """Opens the queue, runs the operation on it, closes it and returns the result."""

    async def session() -> T:
        async with Queue(queue, url) as opened:
            tell_where(opened.connection)
            return await question(opened)

    return asyncio.run(session())


def tell_where(connection: Connection) -> None:
    """Prints the folder of an embedded server, since the user may not have typed one."""
    folder = connection.address.folder
    if connection.address.transport == "embedded" and folder is not None:
        remark(f"embedded server, its data is in {display(folder)}")


def display(folder: Path) -> str:
    """Returns a folder as text, relative if it is below the current one."""
    folder = folder.absolute()
    here = Path.cwd()
    return f"./{folder.relative_to(here)}" if folder.is_relative_to(here) else str(folder)
