"""Reports the processes of a supervisor to the service manager as one service.

Each process sends its supervisor the messages that a service manager would get from it. The service is ready once all
processes are. It is alive while the supervisor's event loop runs and no process is silent for too long.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Sequence

from jobwire.cli.service_manager import READY, STOPPING, WATCHDOG, ServiceManager

_LONGEST_MESSAGE = 4096
_LOOK_EVERY = 0.25

logger = logging.getLogger("jobwire.supervisor")


class Reports:
    """The messages of one process at a time. `kill` ends it."""

    def __init__(self, name: str, kill: Callable[[], None]) -> None:
        self.name = name
        self.ready = False
        self._kill = kill
        self._ours: socket.socket | None = None
        self._last_sign = 0.0

    def open(self) -> int:
        """Begins to read from a new process. Returns the file descriptor that it sends its messages to."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._ours.setblocking(False)
        asyncio.get_running_loop().add_reader(self._ours, self._read)
        return theirs.detach()

    def close(self) -> None:
        self.ready = False
        if self._ours is not None:
            asyncio.get_running_loop().remove_reader(self._ours)
            self._ours.close()
            self._ours = None

    def give_time(self) -> None:
        """Lets the process be silent for the whole limit again, after this process could not read its messages."""
        self._last_sign = time.monotonic()

    def end_if_silent(self, limit: float) -> None:
        """Kills the process if its last sign of life is older than the limit. Only one that was ready gives any."""
        if self.ready and time.monotonic() - self._last_sign > limit:
            logger.error(
                "%s has given no sign of life for %.1f s: its event loop is blocked; killing it", self.name, limit
            )
            self.ready = False
            self._kill()

    def _read(self) -> None:
        if self._ours is None:
            return
        lines = self._ours.recv(_LONGEST_MESSAGE).decode(errors="replace").splitlines()
        self._last_sign = time.monotonic()
        if READY in lines:
            self.ready = True


class GroupReport:
    """Sends the messages of all processes together."""

    def __init__(self, manager: ServiceManager) -> None:
        self._manager = manager
        self._stopping = False
        self.watchdog_usec = round((manager.watchdog or 0) * 1_000_000)

    async def run(self, members: Sequence[Reports]) -> None:
        watchdog, ready, shown, next_sign = self._manager.watchdog, False, "", 0.0
        pause = _LOOK_EVERY if watchdog is None else min(_LOOK_EVERY, watchdog / 4)
        looked = time.monotonic()
        while True:
            now = time.monotonic()
            working = sum(member.ready for member in members)
            if working == len(members) and not ready:
                ready = True
                self._manager.send(READY)
            sentence = f"{working} of {len(members)} processes work"
            if sentence != shown and not self._stopping:
                shown = sentence
                self._manager.status(sentence)
            if watchdog is not None:
                for member in members:
                    if now - looked > watchdog / 2:  # the whole group was held up, not only the member
                        member.give_time()
                    elif not self._stopping:
                        member.end_if_silent(watchdog)
                looked = now
                if now >= next_sign:
                    self._manager.send(WATCHDOG)
                    next_sign = now + watchdog / 2 - pause
            await asyncio.sleep(pause)

    def stopping(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._manager.send(STOPPING, "STATUS=stopping: the processes finish their running jobs")
