"""Suspends the server (SIGSTOP) for 5 and for 20 seconds: connections stay, and answers don't come."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
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
        server = scene.store.server.pid
        _send(signal.SIGSTOP, [server])  # first, so that it starts no others
        stopped = processes_of(server)
        _send(signal.SIGSTOP, stopped)
        try:
            await asyncio.sleep(seconds)
        finally:
            _send(signal.SIGCONT, stopped)


def _send(number: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # that of a connection which was closed just now
            os.kill(pid, number)


def processes_of(pid: int) -> list[int]:
    """Returns a server and its child processes: PostgreSQL has one for each connection."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]
