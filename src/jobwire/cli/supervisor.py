"""Runs the same worker in several processes: starts them, restarts those that die, and ends them together.

Each process has a pipe from the supervisor. The supervisor writes into it what signals ask for: to stop, and at the
second signal to release running jobs at once. Signals are not passed on as signals, because a service manager may send
SIGTERM to all processes, and a worker that got it twice would take that for the second signal. For the same reason the
processes are in groups of their own, where Ctrl-C in a terminal does not reach them. If the supervisor dies, the pipes
are closed, and the processes stop as after a signal.

A process that ends is started again, after a wait that grows with each end that follows soon after its start. A usage
error, or too many such ends in a row, ends the supervisor with the exit code of that process. With `reload` it waits
for a change of a file instead.

Under a service manager, the processes report to the supervisor and the supervisor to the service manager. A process
that gives no sign of life for as long as the service manager would wait is killed, and started again like any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from jobwire.cli.group_report import GroupReport, Reports
from jobwire.cli.service_manager import ServiceManager
from jobwire.cli.supervision import Supervision
from jobwire.worker.signals import signals_call

logger = logging.getLogger("jobwire.supervisor")

STOP, NOW = b"s", b"n"
USAGE_ERROR = 2
_PATIENT_SIGNALS = 2
"""After more signals than this the processes are killed."""
_SOON = 5.0
"""Seconds. A process that ends within this time has ended at its start."""
_MOST_EARLY_ENDS = 5
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 30.0


class Changes(Protocol):
    """Waits for changes of files."""

    async def next(self) -> str:
        """Returns the names of the files that have changed, once some have."""
        ...


class Supervisor:
    """Runs a command in several processes. `command` gets the option --supervised, a Supervision."""

    def __init__(
        self,
        command: Sequence[str],
        processes: int,
        *,
        burst: bool = False,
        changes: Changes | None = None,
        manager: ServiceManager | None = None,
    ) -> None:
        self._changes = changes
        self._report = None if manager is None else GroupReport(manager)
        self._burst = burst
        self._signals = 0
        self._stopping = asyncio.Event()
        self.code = 0
        self._members = [_Member(self, command, number, processes) for number in range(1, processes + 1)]

    @property
    def reloads(self) -> bool:
        return self._changes is not None

    @property
    def burst(self) -> bool:
        return self._burst

    @property
    def stopping(self) -> asyncio.Event:
        return self._stopping

    @property
    def report(self) -> GroupReport | None:
        return self._report

    async def run(self) -> int:
        """Works until a signal or a failure, or in a burst until all processes have ended. Returns the exit code."""
        with signals_call(self._on_signal):
            beside = [asyncio.create_task(self._reload())]
            if self._report is not None:
                beside.append(asyncio.create_task(self._report.run([member.reports for member in self._members])))
            try:
                await asyncio.gather(*(member.keep() for member in self._members))
            finally:
                for task in beside:
                    task.cancel()
                if self._report is not None:
                    self._report.stopping()
        logger.info("all processes have ended")
        return self.code

    def fail(self, code: int) -> None:
        """Ends all processes. The supervisor's exit code is that of the one that failed."""
        self.code = self.code or code
        self._end(STOP)

    def _on_signal(self) -> None:
        self._signals += 1
        if self._signals == 1:
            logger.info("stopping: the processes finish their running jobs")
        self._end(STOP if self._signals == 1 else NOW)
        if self._signals > _PATIENT_SIGNALS:
            for member in self._members:
                member.kill()

    def _end(self, message: bytes) -> None:
        self._stopping.set()
        if self._report is not None:
            self._report.stopping()
        for member in self._members:
            member.send(message)

    async def _reload(self) -> None:
        while self._changes is not None:
            names = await self._changes.next()
            logger.info("%s changed: restarting", names)
            for member in self._members:
                member.restart()


class _Member:
    """One process of the supervisor, and those that replace it."""

    def __init__(self, supervisor: Supervisor, command: Sequence[str], number: int, of: int) -> None:
        self._supervisor = supervisor
        self._command = command
        self._number = number
        self._of = of
        self._pipe: int | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._restart = asyncio.Event()
        self._early_ends = 0
        self.reports = Reports(f"process {number}", self.kill)

    def send(self, message: bytes) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):  # the process has ended, which `keep` sees
                os.write(self._pipe, message)

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def restart(self) -> None:
        """Ends the process, which is then started again."""
        if not self._restart.is_set():
            self._restart.set()
            self.send(STOP)

    async def keep(self) -> None:
        """Keeps the process running until the supervisor stops."""
        stopping = self._supervisor.stopping
        while not stopping.is_set():
            self._restart.clear()
            began = time.monotonic()
            process = self._process = await self._start()
            logger.info("process %d has pid %d", self._number, process.pid)
            code = await self._wait(process)
            if stopping.is_set():
                self._supervisor.code = self._supervisor.code or max(code, 0)
            elif self._restart.is_set():
                self._early_ends = 0
            elif code == 0 and self._supervisor.burst:
                return
            else:
                self._early_ends = self._early_ends + 1 if time.monotonic() - began < _SOON else 0
                await self._after_end(process.pid, code)

    async def _start(self) -> asyncio.subprocess.Process:
        theirs, self._pipe = os.pipe()
        given = Supervision(theirs, self._number, self._of)
        if (report := self._supervisor.report) is not None:
            given = replace(given, reports=self.reports.open(), watchdog_usec=report.watchdog_usec)
        try:
            return await asyncio.create_subprocess_exec(
                *self._command, "--supervised", str(given),
                pass_fds=given.descriptors, stdin=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip
        finally:
            for descriptor in given.descriptors:
                os.close(descriptor)

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        if self._supervisor.stopping.is_set():
            self.send(STOP)
        try:
            return await process.wait()
        finally:
            self._process = None
            self.reports.close()
            if self._pipe is not None:
                os.close(self._pipe)
                self._pipe = None

    async def _after_end(self, pid: int, code: int) -> None:
        """Waits until the process may be started again, or ends the supervisor."""
        how = f"process {self._number} (pid {pid}) {_shown(code)}"
        if self._supervisor.reloads and self._early_ends:
            logger.error("%s; it is started again when a file changes", how)
            await self._rest(None)
        elif code == USAGE_ERROR:
            logger.error("%s: it can't be started with these arguments", how)
            self._supervisor.fail(code)
        elif self._early_ends >= _MOST_EARLY_ENDS:
            logger.error("%s, the last of %d ends at its start; giving up", how, self._early_ends)
            self._supervisor.fail(code if code > 0 else 128 - code)
        else:
            pause = min(_FIRST_WAIT * 2 ** max(0, self._early_ends - 1), _LONGEST_WAIT)
            logger.warning("%s; starting it again in %.1f s", how, pause)
            await self._rest(pause)

    async def _rest(self, seconds: float | None) -> None:
        """Returns after this time, or when a file changes or the supervisor stops."""
        waits = {asyncio.create_task(event.wait()) for event in (self._supervisor.stopping, self._restart)}
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()


def _shown(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def own_command(arguments: Sequence[str]) -> list[str]:
    """Returns the command that runs `jobwire` with these arguments in another process."""
    return [sys.executable, "-m", "jobwire", *arguments]
