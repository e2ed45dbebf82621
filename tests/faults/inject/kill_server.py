"""Kills the server (SIGKILL), which is restarted from its files: settings are those that lose nothing."""

from __future__ import annotations

import os
import signal

from awaiting import eventually
from faults.inject.fault import Fault
from faults.scene import Scene


class KillServer(Fault):
    outage = True
    times_short = 1

    async def inject(self, scene: Scene) -> None:
        victim = scene.store.server.pid
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: scene.store.server.pid not in (0, victim), within=90)
