"""Cuts the network for ten seconds: connections are reset, and new ones are refused."""

from __future__ import annotations

import asyncio

from faults.inject.fault import Fault
from faults.scene import Scene


class CutNetwork(Fault):
    outage = True
    through_proxy = True
    times = 4
    times_short = 1

    async def inject(self, scene: Scene) -> None:
        scene.network.refuse()
        await asyncio.sleep(2.0 if scene.short else 10.0)
        scene.network.accept()
