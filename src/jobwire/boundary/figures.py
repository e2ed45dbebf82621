"""Figures of queues: a few numbers of each, cheap enough to be read from all queues of a store every other second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from jobwire.model import State


@dataclass(frozen=True, slots=True)
class Turnover:
    """Jobs of a queue that were added, completed and failed for good in a period."""

    added: int
    completed: int
    failed: int


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A queue as it is at one moment."""

    name: str
    counts: Mapping[State, int]
    oldest: datetime | None
    """The time since which the oldest of the waiting jobs waits, as far as that is known without reading all."""
    paused: bool | None
    """None if the protocol has no pause."""
    more: frozenset[State] = frozenset()
    """States with more jobs than `counts` has: the counting was stopped."""
    turnover: Turnover | None = None
    """Jobs that came and went since the last reading. None if the changes of `counts` show that."""
    refused: str = ""
    """The reason if the store could not read the queue, which then has no counts."""

    @property
    def oldest_age(self) -> float | None:
        """Seconds since the oldest waiting job waits."""
        return None if self.oldest is None else max(0.0, (datetime.now(UTC) - self.oldest).total_seconds())


@dataclass(frozen=True, slots=True)
class Reading:
    """Figures of several queues, in the order in which they were asked for."""

    queues: Sequence[QueueFigures]
    at: datetime | None = None
    """The store's time, with which the next reading asks for the turnover. None if the store has no turnover."""
