"""Leaves every connection half-open: bytes vanish, and neither side is notified. New connections work afterwards."""

from __future__ import annotations

import asyncio

from faults.inject.fault import Fault
from faults.scene import Scene


class HalfOpen(Fault):
    outage = True
    through_proxy = True
    peers = False  # Node's BullMQ worker does not notice, and does not end by SIGTERM afterwards
    times = 4
    times_short = 1

    async def inject(self, scene: Scene) -> None:
        scene.network.half_open()
        await asyncio.sleep(2.0 if scene.short else 10.0)
        scene.network.heal()
