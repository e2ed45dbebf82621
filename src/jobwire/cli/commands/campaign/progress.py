"""A progress bar on stderr, while a command reads or writes a long file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from jobwire.cli.output import printable


@contextmanager
def bar(text: str) -> Generator[Callable[[int, int | None], None]]:
    """Yields a function that takes what is done and the total, if that is known. Elsewhere than in a terminal it does
    nothing."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    shown = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*shown, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(printable(text), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
