"""Checks which user's process listens on a port, before a password is sent there."""

from __future__ import annotations

from pathlib import Path

_LISTENING = "0A"
_LOOPBACK = "0100007F"


def listens(pid: int, port: int) -> bool:
    """True if a process of the same user as process `pid` listens on the port of 127.0.0.1."""
    wanted = f"{_LOOPBACK}:{port:04X}"
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        table = Path("/proc/net/tcp").read_text()
    except OSError:  # the process has ended
        return False
    uid = next(line.split()[1] for line in status.splitlines() if line.startswith("Uid:"))
    rows = (line.split() for line in table.splitlines()[1:])
    return any(row[1] == wanted and row[3] == _LISTENING and row[7] == uid for row in rows)
