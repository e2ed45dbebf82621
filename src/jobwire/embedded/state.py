"""The small file in which a keeper publishes its server's state for the processes that share the server."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobwire.embedded.ownership import open_file
from jobwire.embedded.process import started

_FILE = "state.json"


@dataclass(frozen=True)
class State:
    """One keeper and its server. `url` is empty while the server starts."""

    keeper: int
    keeper_started: int
    pid: int = 0
    ports: tuple[int, ...] = ()
    url: str = ""

    @property
    def current(self) -> bool:
        """True if the keeper that wrote this still runs. After a crash, the file of an ended keeper is left."""
        return started(self.keeper) == self.keeper_started


def read(folder: Path) -> State | None:
    """Returns the last state written, also by a keeper that has ended. None if there is none or it can't be parsed."""
    try:
        stored: dict[str, Any] = json.loads((folder / _FILE).read_text())
        stored["ports"] = tuple(stored["ports"])
        return State(**stored)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def write(folder: Path, state: State) -> None:
    """Replaces the state atomically. Only its owner can read the file, since the URL may contain a password."""
    fresh = folder / f"{_FILE}.{os.getpid()}.{time.monotonic_ns()}"  # a signal handler may write at the same time
    try:
        with os.fdopen(open_file(fresh, os.O_WRONLY | os.O_TRUNC), "w") as file:
            json.dump(asdict(state), file)
        fresh.replace(folder / _FILE)
    except OSError:  # a full disk, for one
        fresh.unlink(missing_ok=True)
        raise
