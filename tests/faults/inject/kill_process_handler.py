"""Kills the child process in which a handler runs (executor="process"): the run fails, the worker goes on."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

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
        self._crashed: set[str] = set()
        """Jobs that were charged for a crash: three would use up their attempts."""

    async def prepare(self, scene: Scene) -> None:
        self._worker = scene.fleet.start_worker(executor="process", concurrency=2, nap=0.3)

    async def inject(self, scene: Scene) -> None:
        await eventually(lambda: self._kill_one(scene), within=60)

    def _kill_one(self, scene: Scene) -> bool:
        """Kills a child process. It is suspended first, so that it is still in the same run when it is killed."""
        running = self._running(scene)
        if not running:
            return False
        name = scene.chance.choice(list(running))
        pid = int(name.rpartition("-")[2])
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            if self._running(scene).get(name) == running[name]:
                os.kill(pid, signal.SIGKILL)
                self._crashed.add(running[name].job)
                return True
            os.kill(pid, signal.SIGCONT)
        return False

    def _running(self, scene: Scene) -> dict[str, Entry]:
        """Returns the child processes that run a job which may be charged for a crash, each with the run's start."""
        assert self._worker is not None
        prefix = f"{self._worker.name}-child-"
        last: dict[str, Entry] = {entry.by: entry for entry in scene.ledger.refresh() if entry.by.startswith(prefix)}
        return {
            name: entry
            for name, entry in last.items()
            if entry.kind is Kind.STARTED
            and kind_of(entry.n) is PLAIN
            and entry.job not in self._crashed
            and os.path.exists(f"/proc/{name.rpartition('-')[2]}")
        }
