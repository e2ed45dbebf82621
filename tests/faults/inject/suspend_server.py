"""Suspends the server (SIGSTOP) for 5 and for 20 seconds: connections stay, and answers don't come."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from faults.inject.fault import Fault
from faults.scene import Scene


class SuspendServer(Fault):
    outage = True
    times = 4
    times_short = 1

    def __init__(self) -> None:
        self._rounds = 0

    async def inject(self, scene: Scene) -> None:
        self._rounds += 1
        seconds = 3.0 if scene.short else (5.0 if self._rounds % 2 else 20.0)
        stopped = processes_of(scene.store.server.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)


def processes_of(pid: int) -> list[int]:
    """Returns a server and its child processes: PostgreSQL has one for each connection."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]
