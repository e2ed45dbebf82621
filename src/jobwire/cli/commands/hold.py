"""`jobwire pause` and `jobwire resume`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from jobwire.cli.parameters import QueueName, StoreName, Url

if TYPE_CHECKING:
    from jobwire.queue import Queue


def pause(queue: QueueName, url: Url = None, store: StoreName = None) -> None:
    """Stop all workers of a queue from starting jobs. Running jobs go on, and jobs can still be added."""
    typer.echo(f"paused {queue}" if _set(queue, url, store, paused=True) else f"{queue} was paused already")


def resume(queue: QueueName, url: Url = None, store: StoreName = None) -> None:
    """End the pause of a queue."""
    typer.echo(f"resumed {queue}" if _set(queue, url, store, paused=False) else f"{queue} was not paused")


def _set(queue: str, url: str | None, store: str | None, *, paused: bool) -> bool:
    """Pauses or resumes the queue. Returns False if it was so already."""
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> bool:
        before = await opened.admin.paused()
        await (opened.admin.pause() if paused else opened.admin.resume())
        return before is not paused

    return ask(queue, located(url, store), question)
