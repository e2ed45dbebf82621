"""The processor time of a PostgreSQL server on this machine, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg

_TICK = os.sysconf("SC_CLK_TCK")
_PARENT, _OWN, _ENDED = 1, slice(11, 13), slice(13, 15)
"""Fields of /proc/<pid>/stat after the name: the parent, the ticks of the process, those of children that ended."""


def processor_seconds(url: str) -> float:
    """Returns the seconds that all processes of the server have used since its start."""
    with psycopg.connect(url, autocommit=True) as connection:
        [folder] = connection.execute("SHOW data_directory").fetchone() or [""]
    server = int((Path(folder) / "postmaster.pid").read_text().partition("\n")[0])
    ticks = sum(map(int, _stat(Path(f"/proc/{server}"))[_ENDED]))
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                found = _stat(process)
            except OSError:  # it has ended
                continue
            if server in (int(process.name), int(found[_PARENT])):
                ticks += sum(map(int, found[_OWN]))
    return ticks / _TICK


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text().rpartition(")")[2].split()
