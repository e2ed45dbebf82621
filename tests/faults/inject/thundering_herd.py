"""Keeps hundreds of idle claimers waiting for every job: each job wakes many of them, and one runs it."""

from __future__ import annotations

from faults.inject.fault import Fault
from faults.scene import Scene


class ThunderingHerd(Fault):
    times = 20
    times_short = 1
    CLAIMERS, CLAIMERS_SHORT, PROCESSES = 500, 30, 5

    async def prepare(self, scene: Scene) -> None:
        processes = 1 if scene.short else self.PROCESSES
        claimers = self.CLAIMERS_SHORT if scene.short else self.CLAIMERS // self.PROCESSES
        for _ in range(processes):
            scene.fleet.start_worker(claimers=claimers, concurrency=1)

    async def inject(self, scene: Scene) -> None:
        await scene.progress(30)
