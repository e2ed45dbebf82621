"""Options that only BullMQ has."""

from __future__ import annotations

from jobwire.checks import whole
from jobwire.native.made import native


@native
class BullMQWorker:
    """Options of one worker on BullMQ."""

    metrics: int | None = None
    """For how many minutes the store keeps counts of finished jobs."""
    max_started_attempts: int | None = None
    """A job that was started more often than this fails without being run, however its earlier runs ended."""

    def __post_init__(self) -> None:
        if self.metrics is not None:
            whole("metrics", self.metrics, minimum=1)
        if self.max_started_attempts is not None:
            whole("max_started_attempts", self.max_started_attempts, minimum=1)
