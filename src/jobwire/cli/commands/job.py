"""`jobwire job`: everything about one job."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from typing import TYPE_CHECKING

from jobwire.cli.parameters import JobId, Json, QueueName, StoreName, Url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobwire.model import Job
    from jobwire.queue import Queue


def job(
    queue: QueueName,
    job_id: JobId,
    url: Url = None,
    store: StoreName = None,
    as_json: Json = False,
) -> None:
    """Show everything about one job: data, result or error, times, log."""
    from jobwire.cli.jobview import record, show
    from jobwire.cli.output import console, emit
    from jobwire.cli.profiles import located
    from jobwire.cli.session import ask

    found, logs = ask(queue, located(url, store), lambda opened: _read(opened, job_id))
    if as_json:
        emit({**record(found), "logs": None if logs is None else list(logs)})
    else:
        show(console(), found, logs)


async def _read(queue: Queue, job_id: str) -> tuple[Job, Sequence[str] | None]:
    """Returns the job and its log, or None for the log if the protocol has none."""
    from jobwire.boundary import Feature
    from jobwire.errors import JobNotFound

    found = await queue.get(job_id)
    if found is None:
        raise JobNotFound(queue.name, job_id)
    return found, await queue.logs(job_id) if queue.capabilities.has(Feature.LOGS) else None
