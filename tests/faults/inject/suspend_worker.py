"""Suspends a worker (SIGSTOP) beyond its lease, and lets it go on: its outcomes must be refused."""

from __future__ import annotations

import asyncio
import signal
from typing import ClassVar

from faults.inject.fault import Fault
from faults.scene import Scene


class SuspendWorker(Fault):
    settings: ClassVar[dict[str, float]] = {"lease": 1.0, "nap": 0.1}

    async def inject(self, scene: Scene) -> None:
        victim = scene.fleet.any(scene.chance)
        victim.send(signal.SIGSTOP)
        await asyncio.sleep(scene.lease + scene.chance.uniform(0.5, 1.0))
        victim.send(signal.SIGCONT)
