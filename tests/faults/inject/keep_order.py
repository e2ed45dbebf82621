"""Kills the only worker, which runs one job at a time, or resets its connections: jobs still start in their order."""

from __future__ import annotations

import signal
from typing import Any, ClassVar

from faults.case import Promises
from faults.inject.fault import Fault
from faults.scene import Scene


class KeepOrder(Fault):
    outage = True
    through_proxy = True
    survivor = False
    peers = False
    times = 40
    times_short = 2
    settings: ClassVar[dict[str, Any]] = {"concurrency": 1, "lease": 1.0}

    def __init__(self) -> None:
        self._lost = 0

    async def inject(self, scene: Scene) -> None:
        self._lost += 1
        if scene.chance.random() < 0.5:
            scene.network.cut()
            return
        [worker] = scene.fleet.workers
        worker.send(signal.SIGKILL)
        scene.fleet.replace(worker)

    @property
    def promises(self) -> Promises:
        return Promises(overtaken=self._lost)
