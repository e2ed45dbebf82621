"""What a demo shows at one time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobwire.cli.demo.station import Station


@dataclass(frozen=True, slots=True)
class Moment:
    """What there is to see now."""

    stations: Sequence[Station]
    elapsed: float
    seconds: float
    phase: str


Watch = Callable[[Moment], None]
