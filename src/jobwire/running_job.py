"""The fields of a running job: the same for every kind of handler, and for jobs that are claimed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic

from jobwire.generics import In_co
from jobwire.model import Job


class Running(Generic[In_co]):
    """The fields that every class of running jobs has."""

    __slots__ = ("_job",)

    def __init__(self, job: Job) -> None:
        self._job = job

    @property
    def snapshot(self) -> Job:
        """The job as it was when it was claimed."""
        return self._job

    @property
    def id(self) -> str:
        return self._job.id

    @property
    def queue(self) -> str:
        return self._job.queue

    @property
    def name(self) -> str:
        return self._job.name

    @property
    def data(self) -> In_co:
        return self._job.data

    def fill_data(self, data: Any) -> None:
        """Replaces the data of this run only, by data that holds the results that the job has waited for. What is
        stored stays as it is."""
        self._job = replace(self._job, data=data)

    @property
    def priority(self) -> int:
        return self._job.priority

    @property
    def attempts(self) -> int | None:
        return self._job.attempts

    @property
    def attempts_made(self) -> int:
        """The number of runs that ended before this one and counted."""
        return self._job.attempts_made

    @property
    def progress(self) -> Any:
        return self._job.progress

    @property
    def created_at(self) -> datetime | None:
        return self._job.created_at

    @property
    def started_at(self) -> datetime | None:
        return self._job.started_at

    @property
    def stacktrace(self) -> Sequence[str]:
        return self._job.stacktrace

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.name!r} of {self.queue!r}>"
