"""`jobwire logs`: the lines that handlers have logged for a job."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from jobwire.cli.parameters import Every, JobId, JsonLines, QueueName, StoreName, Url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobwire.queue import Queue


def logs(
    queue: QueueName,
    job_id: JobId,
    *,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", metavar="", help="Go on with new lines until the job has finished, or Ctrl-C."),
    ] = False,
    every: Every = 1.0,
    url: Url = None,
    store: StoreName = None,
    as_json: JsonLines = False,
) -> None:
    """Print the lines that handlers have logged for a job, oldest first."""
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask, ended_by_ctrl_c

    with ended_by_ctrl_c():
        ask(
            queue,
            located(url, store),
            lambda opened: _print(opened, job_id, max(0.05, every) if follow else None, as_json=as_json),
        )


async def _print(queue: Queue, job_id: str, every: float | None, *, as_json: bool) -> None:
    """Prints the log, and with `every` goes on until the job has finished."""
    import asyncio

    from jobwire.cli.output import emit, printable_lines, say
    from jobwire.errors import JobNotFound

    seen: Sequence[str] = ()
    while True:
        job = await queue.get(job_id)  # before the log: lines of a job that has finished are all there
        if job is None and not seen:
            raise JobNotFound(queue.name, job_id)
        lines = await queue.logs(job_id)
        for line in lines[overlap(seen, lines) :]:
            emit(line) if as_json else say(printable_lines(line))
        seen = lines
        if every is None or job is None or job.state.finished:
            return
        await asyncio.sleep(every)


def overlap(before: Sequence[str], after: Sequence[str]) -> int:
    """Returns how many lines at the start of the log have been shown. A log that keeps its last lines loses the first.

    >>> overlap(["a", "b"], ["a", "b", "c"]), overlap(["a", "b"], ["b", "c"]), overlap(["a"], ["c"])
    (2, 1, 0)
    """
    for length in range(min(len(before), len(after)), 0, -1):
        if list(before[-length:]) == list(after[:length]):
            return length
    return 0
