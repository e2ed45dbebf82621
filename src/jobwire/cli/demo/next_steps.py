"""The end of the demo's output: where to look, and the first commands to try."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from jobwire.cli.demo.report import Report
from jobwire.cli.session import display


def show_next_steps(console: Console, report: Report, folder: Path, *, dashboard: str | None, page: str | None) -> None:
    """Prints the address of the dashboard (None if it is not served any more), the report's page, and commands."""
    console.print(Text("What next", style="bold"))
    if page is not None:
        _show(console, "a report of all queues, made by Spark", Path(page).absolute().as_uri())
    if sys.prefix != sys.base_prefix and "VIRTUAL_ENV" not in os.environ:
        _show(console, "the commands of this demo, in your shell", f". {display(Path(sys.prefix))}/bin/activate")
    for purpose, command in _commands(report, dashboard):
        _show(console, purpose, command)
    if dashboard is not None:
        _show(console, "the dashboard, where a few jobs a second go on until Ctrl-C", dashboard)
    console.print(Text(f"Data and workers.log are in {display(folder)}; the next demo starts afresh.", style="dim"))


def _show(console: Console, purpose: str, what: str) -> None:
    console.print(Text(f"  {purpose}:", style="dim"))
    console.print(Text(f"    {what}", style="cyan"))


def _commands(report: Report, dashboard: str | None) -> Iterator[tuple[str, str]]:
    for store in report.stores[:1]:
        for queue in store.queues:
            if queue.failed:
                yield "what failed, and why", f"jobwire jobs {queue.queue} --state failed --url {store.url}"
            if queue.retried_job is not None:
                job = f"{queue.queue} {queue.retried_job}"
                yield "a job that failed at first, with its log", f"jobwire job {job} --url {store.url}"
        if dashboard is None:
            yield "this store's dashboard", f"jobwire dashboard --url {store.url}"
        yield "what loses or delays jobs in this store", f"jobwire doctor {store.url}"
    yield "a queue and a worker of your own", "python examples/first.py"
