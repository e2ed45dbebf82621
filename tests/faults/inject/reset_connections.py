"""Resets every connection in mid-call, several times a second."""

from __future__ import annotations

import asyncio

from faults.inject.fault import Fault
from faults.scene import Scene


class ResetConnections(Fault):
    outage = True
    through_proxy = True
    times = 40
    times_short = 6

    async def inject(self, scene: Scene) -> None:
        scene.network.cut()
        await asyncio.sleep(scene.chance.uniform(0.05, 0.3))
