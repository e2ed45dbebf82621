"""The state of a demo at one time, for display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobwire.cli.demo.station import Station


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that a watcher displays."""

    stations: Sequence[Station]
    elapsed: float
    seconds: float
    phase: str


Watch = Callable[[Moment], None]
