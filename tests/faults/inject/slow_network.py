"""Delays every byte by some hundredths of a second, and breaks the connections now and then."""

from __future__ import annotations

from faults.inject.fault import Fault
from faults.scene import Scene


class SlowNetwork(Fault):
    outage = True
    through_proxy = True
    times = 20

    async def inject(self, scene: Scene) -> None:
        scene.network.delay = scene.chance.uniform(0.01, 0.05)
        await scene.progress(20)
        scene.network.cut()

    async def undo(self, scene: Scene) -> None:
        scene.network.delay = 0.0
