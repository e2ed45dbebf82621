"""Everything about the present and near future of the queues of a lake, for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from jobwire.pipeline.targets.budget import Budget, budgets
from jobwire.pipeline.targets.change import Change, changes
from jobwire.pipeline.targets.forecast import Forecast, forecast
from jobwire.pipeline.targets.from_lake import Picture
from jobwire.pipeline.targets.hours import QueueKey
from jobwire.pipeline.targets.target import Targets


@dataclass(frozen=True)
class Outlook:
    """The figures of all queues at one time."""

    at: datetime
    targets: Targets
    budgets: Sequence[Budget]
    forecasts: Sequence[Forecast]
    changes: Sequence[Change]
    compared: bool
    """The lake has two weeks of at least one queue, so that weeks could be compared."""


def outlook(picture: Picture, targets: Targets, began: Mapping[QueueKey, datetime] | None = None) -> Outlook:
    """Returns the outlook. `began` has the time from which each queue was observed, where that is known."""
    known = began or {}
    until = picture.until
    forecasts = [
        forecast(hours, picture.backlogs.get(hours.key), targets.of_queue(hours.key.queue), until, known.get(hours.key))
        for hours in picture.queues
    ]
    return Outlook(
        until,
        targets,
        budgets(picture.queues, picture.backlogs, targets, until),
        forecasts,
        changes(picture.queues, until, picture.read_at),
        compared=any((until - hours.first).days >= 13 for hours in picture.queues),
    )
