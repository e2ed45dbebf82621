"""`jobwire wait`: waits for a job and prints its result."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.durations import duration
from jobwire.cli.parameters import JobId, QueueName, StoreName, Url

if TYPE_CHECKING:
    from jobwire.queue import Queue


def wait(
    queue: QueueName,
    job_id: JobId,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="DURATION", parser=duration, help="The longest time to wait, such as 30s.", show_default=False
        ),
    ] = None,
    url: Url = None,
    store: StoreName = None,
) -> None:
    """Wait until a job has completed and print its result as JSON. Ends with exit code 1 if the job fails."""
    from jobwire.cli.output import emit
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    async def question(opened: Queue) -> Any:
        return await opened.wait(job_id, timeout)

    emit(ask(queue, located(url, store), question))
