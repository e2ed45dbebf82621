"""Adds workers whose clocks are five minutes ahead and behind: they take no job of others, and run none early."""

from __future__ import annotations

from faults.inject.fault import Fault
from faults.scene import Scene

FIVE_MINUTES = 300.0


class StepClock(Fault):
    times_short = 1
    times = 6

    def __init__(self) -> None:
        self._ahead = FIVE_MINUTES

    async def prepare(self, scene: Scene) -> None:
        scene.fleet.start_worker(ahead=-FIVE_MINUTES)

    async def inject(self, scene: Scene) -> None:
        worker = scene.fleet.start_worker(ahead=self._ahead)
        self._ahead = -self._ahead
        await scene.runs_of(worker, 5)
