"""The service manager's end of the socket that NOTIFY_SOCKET names."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator


class Inbox:
    """The service manager's end of the socket."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.seen: list[str] = []

    def next(self, within: float) -> list[str]:
        """The lines of the next message, or none if there is none in time."""
        if not select.select([self.socket], [], [], within)[0]:
            return []
        lines = self.socket.recv(4096).decode().splitlines()
        self.seen += lines
        return lines

    def until(self, line: str, within: float = 30.0) -> None:
        deadline = time.monotonic() + within
        while line not in self.next(deadline - time.monotonic()):
            assert time.monotonic() < deadline, f"{line} has not come: {self.seen}"

    def drain(self) -> None:
        while self.next(0):
            pass


def opened(environment: dict[str, str], address: str) -> Iterator[Inbox]:
    """Yields an inbox whose address is in the environment, `@name` for an abstract one."""
    environment["NOTIFY_SOCKET"] = address
    made = Inbox(address.replace("@", "\0", 1) if address.startswith("@") else address)
    yield made
    made.socket.close()
