"""What the keeper of a server tells the processes that share it, in one small file."""

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
        """Whether the keeper that wrote this still runs: a crash leaves the file behind."""
        return started(self.keeper) == self.keeper_started


def read(folder: Path) -> State | None:
    """The last state written, by a living keeper or a dead one; None if there is none that makes sense."""
    try:
        stored: dict[str, Any] = json.loads((folder / _FILE).read_text())
        stored["ports"] = tuple(stored["ports"])
        return State(**stored)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def write(folder: Path, state: State) -> None:
    """Replace the state in one step. Readable by its owner only, since a URL may hold a password."""
    fresh = folder / f"{_FILE}.{os.getpid()}.{time.monotonic_ns()}"  # a signal handler may write while we do
    with os.fdopen(open_file(fresh, os.O_WRONLY | os.O_TRUNC), "w") as file:
        json.dump(asdict(state), file)
    fresh.replace(folder / _FILE)
