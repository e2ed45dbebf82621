"""The process that holds a connection on loopback."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def holder_of(port: int) -> str:
    """Returns the id and the command line of the process whose end of a connection has this port."""
    sockets = _sockets(port)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is that of another account
            if sockets & _files(process):
                return f"process {process.name}: {(process / 'cmdline').read_text().replace(chr(0), ' ')[:120]}"
    return "no process that can be seen"


def _sockets(port: int) -> set[str]:
    """Returns the sockets that are bound to the port, as they are named among the files of a process."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port and row[9] != "0"}


def _files(process: Path) -> set[str]:
    """Returns what a process has open, without what it closes meanwhile."""
    found: set[str] = set()
    for link in (process / "fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(os.readlink(link))
    return found
