"""The period that a report covers, and how finely it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pandas as pd

from jobwire.pipeline.report.frames import Column
from jobwire.pipeline.report.wording import duration


@dataclass(frozen=True)
class Period:
    """From `start` up to, not with, `end`; both aware.

    >>> from datetime import UTC, datetime
    >>> str(Period(datetime(2026, 5, 11, tzinfo=UTC), datetime(2026, 5, 18, tzinfo=UTC)))
    '11 May 2026 to 17 May 2026 (UTC)'
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None or self.end < self.start:
            raise ValueError(f"a period needs two aware times in order, not {self.start!r} and {self.end!r}")

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    @property
    def momentary(self) -> bool:
        """Returns True if the period is too short for hourly figures to show a trend: queues are compared instead."""
        return self.length < timedelta(hours=3)

    @property
    def grain(self) -> str:
        """Returns `hour`, or `day` where hours would be drawn too finely to be seen."""
        return "hour" if self.length <= timedelta(days=10) else "day"

    @property
    def step(self) -> timedelta:
        return timedelta(hours=1) if self.grain == "hour" else timedelta(days=1)

    def buckets(self) -> Column:
        """Returns the start of every hour or day that the period touches, in UTC."""
        return self._starts("h" if self.grain == "hour" else "D")

    def days(self) -> Column:
        """Returns the start of every day that the period touches, in UTC."""
        return self._starts("D")

    def _starts(self, frequency: str) -> Column:
        last = max(self.start, self.end - timedelta(microseconds=1))
        ends: Column = pd.DatetimeIndex([self.start.astimezone(UTC), last.astimezone(UTC)])
        first, final = ends.floor(frequency)
        return pd.date_range(first, final, freq=frequency)

    def __str__(self) -> str:
        start = self.start.astimezone(UTC)
        if self.length < timedelta(days=2):
            length = duration(self.length.total_seconds() * 1000)
            return f"{length} from {start.day} {start:%b %Y, %H:%M} (UTC)"
        last = self.end.astimezone(UTC) - timedelta(microseconds=1)
        return f"{start.day} {start:%b %Y} to {last.day} {last:%b %Y} (UTC)"
