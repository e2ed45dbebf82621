"""Restarts every worker but one, one after another, by SIGTERM, as a deployment does."""

from __future__ import annotations

from faults.inject.fault import Fault
from faults.scene import Scene


class RollingRestart(Fault):
    times_short = 1

    async def inject(self, scene: Scene) -> None:
        for worker in scene.fleet.workers[1:]:
            stuck = await scene.fleet.stop(worker)
            assert not stuck or worker.name.startswith("node"), f"{stuck} did not end by SIGTERM"
            scene.fleet.replace(worker)
            await scene.progress(3)
