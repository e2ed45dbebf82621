"""The job whose task is running."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, cast

from jobwire.running_job import Running
from jobwire.worker.active import ActiveJob

CONTEXT_KEY = "$context"
"""The key in a job's data that holds its context."""

running: ContextVar[Running] = ContextVar("jobwire_running")


def current_job() -> ActiveJob[Any]:
    """Returns the job that this code runs for. A plain function gets it as jobwire.sync's `current_job` returns it: its
    methods block. Raises LookupError outside of a task."""
    try:
        return cast("ActiveJob[Any]", running.get())
    except LookupError:
        raise LookupError("no task is running here: current_job() works in a task, and in what it calls") from None


def context_of(job: Running) -> Mapping[str, Any]:
    """Returns the context that middleware of the producer has sent with the job."""
    data: Any = job.data
    found: Any = cast("dict[str, Any]", data).get(CONTEXT_KEY) if isinstance(data, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
