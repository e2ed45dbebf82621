"""`jobwire workers`: the workers of a queue."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING

from jobwire.cli.parameters import JsonLines, QueueName, StoreName, Url

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from jobwire.model import WorkerInfo
    from jobwire.queue import Queue


def workers(queue: QueueName, url: Url = None, store: StoreName = None, as_json: JsonLines = False) -> None:
    """List the workers that are connected to a queue, in any language, where the protocol has such a list."""
    from rich.table import Table
    from rich.text import Text

    from jobwire.cli.exit_codes import NothingFound
    from jobwire.cli.output import console, emit, printable
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> Sequence[WorkerInfo]:
        return await opened.admin.workers()

    found = ask(queue, located(url, store), question)
    if not found:
        raise NothingFound(f"there are no workers of {queue}")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("worker", no_wrap=True)
    table.add_column("address", no_wrap=True)
    table.add_column("client", no_wrap=True)
    table.add_column("last seen", no_wrap=True, justify="right")
    for worker in found:
        if as_json:
            seen = {"client": worker.client, "seen_at": worker.seen_at}
            emit({"name": worker.name, "address": worker.address, **seen, "raw": dict(worker.raw)})
        table.add_row(
            Text(printable(worker.name) or "–"),
            Text(printable(worker.address)),
            Text(printable(worker.client)),
            _ago(worker.seen_at),
        )
    if not as_json:
        console().print(table)


def _ago(moment: datetime | None) -> str:
    from datetime import UTC, datetime

    return "" if moment is None else f"{max(0.0, (datetime.now(UTC) - moment).total_seconds()):.0f} s ago"
