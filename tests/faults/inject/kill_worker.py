"""Kills a worker (SIGKILL) and starts another."""

from __future__ import annotations

import signal

from faults.inject.fault import Fault
from faults.scene import Scene


class KillWorker(Fault):
    times = 100
    times_short = 4

    async def inject(self, scene: Scene) -> None:
        victim = scene.fleet.any(scene.chance)
        victim.send(signal.SIGKILL)
        scene.fleet.replace(victim)
