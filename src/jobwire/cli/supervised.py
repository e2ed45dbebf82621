"""The side of a worker process that a supervisor has started: it reads from the supervisor's pipe when to stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket

from jobwire.cli.service_manager import ServiceManager
from jobwire.cli.supervision import Supervision
from jobwire.cli.supervisor import NOW
from jobwire.worker import Worker

_stops: set[asyncio.Task[None]] = set()


def manager_of(supervision: Supervision) -> ServiceManager | None:
    """Returns the supervisor as the service manager of this process, or None if the supervisor has none itself."""
    if supervision.reports < 0:
        return None
    usec = supervision.watchdog_usec
    return ServiceManager(socket.socket(fileno=supervision.reports), usec / 1_000_000 if usec else None)


def obey(pipe: int, worker: Worker) -> None:
    """Stops the worker when the supervisor asks for that, or has died. Must be called in the worker's event loop.

    A signal to this process stops the worker too, however often it comes. Only the supervisor counts signals.
    """
    loop = asyncio.get_running_loop()

    def stop(*, now: bool = False) -> None:
        stopping = loop.create_task(worker.stop(now=now))
        _stops.add(stopping)
        stopping.add_done_callback(_stops.discard)

    def read() -> None:
        messages = os.read(pipe, 64)
        if not messages:
            loop.remove_reader(pipe)
        stop(now=NOW in messages)

    loop.add_reader(pipe, read)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
