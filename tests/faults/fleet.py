"""The processes of a run: producers, workers in Python, and a Node worker where the protocol has a Node peer."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from awaiting import eventually
from faults.case import Vitals
from faults.nursery import TESTS, Nursery
from faults.stores import Store

_GOES_WITHIN = 60.0
_PEER_GOES_WITHIN = 5.0
"""Once ours have ended. A Node worker whose connections were closed by the server may wait for them without end."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Member:
    """A process of the fleet."""

    name: str
    pid: int
    process: subprocess.Popen[bytes] | None = None
    """None if the nursery has forked it."""

    @property
    def alive(self) -> bool:
        if self.process is not None:
            return self.process.poll() is None
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in "ZX"

    def send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    @property
    def vitals(self) -> Vitals:
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines() if ":" in line
        )
        memory = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE
        sockets = 0
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                sockets += os.readlink(link).startswith("socket:")
        return Vitals(int(status["Threads"]), sockets, memory)


class Fleet:
    """Starts, replaces and stops the processes. `settings` are those of every Python worker."""

    def __init__(self, store: Store, nursery: Nursery, folder: Path, url: str, settings: Mapping[str, Any]) -> None:
        self._store = store
        self._nursery = nursery
        self._folder = folder
        self._url = url
        self._settings = {"url": url, "folder": str(folder), "native": store.native, **settings}
        self.workers: list[Member] = []
        self.producers: list[Member] = []
        self._number = 0

    def start_worker(self, **changes: Any) -> Member:
        """Starts a worker in Python. One with a wrong clock, or with child processes, can't be forked."""
        settings = self._named("python", changes)
        if changes.get("ahead") or changes.get("executor"):
            program = [sys.executable, "-m", "faults.worker_program", json.dumps(settings)]
            environment = {**os.environ, "PYTHONPATH": str(TESTS)}
            process = subprocess.Popen(program, cwd=TESTS, env=environment)
            member = Member(settings["name"], process.pid, process)
        else:
            member = Member(settings["name"], self._nursery.start("worker_program", json.dumps(settings)))
        self.workers.append(member)
        return member

    def start_peer(self) -> Member | None:
        """Starts Node's worker, if there is one."""
        if self._store.peer is None:
            return None
        from interop.node_process import NODE

        settings = self._named("node", {"package": self._store.peer_package, "concurrency": 4, "nap": 0.02})
        log = (self._folder / f"{settings['name']}.log").open("wb")
        command = [NODE, self._store.peer, json.dumps(settings)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        self.workers.append(Member(settings["name"], process.pid, process))
        return self.workers[-1]

    def start_producer(self, rate: float, extra: Mapping[str, Any]) -> Member:
        name = f"producer-{len(self.producers) + 1}"
        first = len(self.producers) * 10**7
        settings = {"url": self._url, "folder": str(self._folder), "name": name, "first": first, "rate": rate}
        pid = self._nursery.start("producer_program", json.dumps({**settings, "extra": extra}))
        self.producers.append(Member(name, pid))
        return self.producers[-1]

    def _named(self, language: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        return {"lease": 2.0, "name": f"{language}-{self._number}", **self._settings, **changes}

    def any(self, chance: random.Random) -> Member:
        """Returns a worker that a fault may hit: not the first one, whose vitals are compared in the end."""
        return chance.choice([worker for worker in self.workers[1:] if self._may_be_hurt(worker)])

    def _may_be_hurt(self, worker: Member) -> bool:
        return self._store.peers_jobs_are_recovered or not worker.name.startswith("node")

    def replace(self, worker: Member) -> Member:
        """Starts a worker of the same kind in place of one that has ended."""
        self.workers.remove(worker)
        if worker.process is not None:
            worker.process.wait(_GOES_WITHIN)
        else:
            self._nursery.forget(worker.pid)
        if worker.name.startswith("node"):
            member = self.start_peer()
            assert member is not None
            return member
        return self.start_worker()

    async def stop(self, *members: Member) -> list[str]:
        """Asks processes to end. Returns the names of those that had to be killed."""
        for member in members:
            member.send(signal.SIGTERM)
        for ours, within in ((True, _GOES_WITHIN), (False, _PEER_GOES_WITHIN)):
            those = [member for member in members if member.name.startswith("node") != ours]
            with suppress(AssertionError):
                await eventually(lambda those=those: not any(member.alive for member in those), within=within)
        stuck = [member for member in members if member.alive]
        for member in stuck:
            member.send(signal.SIGKILL)
        for member in members:
            if member.process is not None:
                await asyncio.to_thread(member.process.wait)
            else:
                self._nursery.forget(member.pid)
        return [member.name for member in stuck]

    def kill_all(self) -> None:
        for member in (*self.workers, *self.producers):
            if member.alive:
                member.send(signal.SIGCONT)
                member.send(signal.SIGKILL)
            if member.process is not None:
                member.process.wait()
