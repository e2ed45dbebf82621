"""Kills the child process in which a handler runs (executor="process"): the run fails, the worker goes on."""

from __future__ import annotations

import os
import signal

from awaiting import eventually
from faults.fleet import Member
from faults.inject.fault import Fault
from faults.kinds import PLAIN, kind_of
from faults.ledger import Entry, Kind
from faults.scene import Scene


class KillProcessHandler(Fault):
    times = 20
    transactions = False  # a child process has no transaction of its worker

    def __init__(self) -> None:
        self._worker: Member | None = None

    async def prepare(self, scene: Scene) -> None:
        self._worker = scene.fleet.start_worker(executor="process", concurrency=2, nap=0.3)

    async def inject(self, scene: Scene) -> None:
        worker = self._worker
        assert worker is not None
        running = await eventually(lambda: _running(scene, f"{worker.name}-child-"), within=60)
        os.kill(int(scene.chance.choice(running).rpartition("-")[2]), signal.SIGKILL)


def _running(scene: Scene, prefix: str) -> list[str]:
    """Returns the names of child processes that run a job which may be charged for a crash, and were not killed yet."""
    last: dict[str, Entry] = {entry.by: entry for entry in scene.ledger.refresh() if entry.by.startswith(prefix)}
    return [
        name
        for name, entry in last.items()
        if entry.kind is Kind.STARTED
        and kind_of(entry.n) is PLAIN
        and os.path.exists(f"/proc/{name.rpartition('-')[2]}")
    ]
