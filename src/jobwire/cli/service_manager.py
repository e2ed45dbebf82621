"""Messages to the service manager, as systemd's `Type=notify` and `WatchdogSec=` want them.

A message is a datagram of lines such as `READY=1` to the socket that NOTIFY_SOCKET names: a path, or an abstract name
that begins with `@`. Without that variable there is no service manager, and nothing is sent.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import MutableMapping
from typing import Self

READY, STOPPING, WATCHDOG = "READY=1", "STOPPING=1", "WATCHDOG=1"

_MOST_DIGITS = 18

logger = logging.getLogger("jobwire.service")


class ServiceManager:
    """Sends messages to a service manager. `watchdog` is the time in seconds within which it wants a sign of life, or
    None if it wants none."""

    def __init__(self, outlet: socket.socket, watchdog: float | None = None) -> None:
        outlet.setblocking(False)
        self._socket = outlet
        self._failed = False
        self.watchdog = watchdog

    @classmethod
    def from_environment(cls, environment: MutableMapping[str, str]) -> Self | None:
        """Returns the service manager that started this process, or None.

        The variables are removed, so that programs that handlers start do not speak in the name of this service.
        """
        address = environment.pop("NOTIFY_SOCKET", "")
        limit, owner = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        if not address:
            return None
        outlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            outlet.connect("\0" + address[1:] if address.startswith("@") else address)
        except OSError as error:
            outlet.close()
            logger.warning("the service manager's socket %s can't be used (%s); it gets no messages", address, error)
            return None
        usable = limit.isdecimal() and len(limit) <= _MOST_DIGITS  # Python can't wait for longer than that
        wanted = usable and int(limit) > 0 and owner in ("", str(os.getpid()))
        return cls(outlet, int(limit) / 1_000_000 if wanted else None)

    def send(self, *lines: str) -> None:
        """Sends one message. One that can't be sent is dropped, since the work matters more. The log has the first."""
        try:
            self._socket.send("\n".join(lines).encode())
        except OSError as error:
            if not self._failed:
                self._failed = True
                logger.warning("a message to the service manager could not be sent: %s", error)

    def status(self, sentence: str) -> None:
        """Sends a sentence for people, which `systemctl status` shows."""
        self.send(f"STATUS={' '.join(sentence.split())}")

    def close(self) -> None:
        self._socket.close()
