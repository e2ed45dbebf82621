"""The ledger: what producers, handlers and workers saw, outside of the store under test.

Each process appends to a file of its own, one line of JSON per entry, in one write: a kill leaves whole lines. Node's
workers write the same lines.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """Kinds of entries."""

    INTENDED = "intended"
    """A producer is about to add the job."""
    ACKNOWLEDGED = "acknowledged"
    """The store has taken the job, under the id `job`."""
    REFUSED = "refused"
    """The call raised: the job may or may not be there. `detail` is the error."""
    STARTED = "started"
    """A handler began, under the claim `token`, which the store made at `claimed`."""
    ENDED = "ended"
    """The handler returned, raised or was cancelled, as `detail` has it."""
    VERDICT = "verdict"
    """The store's answer to the claim's outcome, as `detail` has it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the ledger. `n` is the job's number, which its producer chose."""

    kind: Kind
    by: str
    at: float
    n: int = -1
    job: str = ""
    token: str = ""
    claimed: float = 0.0
    detail: str = ""


class Book:
    """The file of one process."""

    def __init__(self, folder: Path | str, name: str) -> None:
        self._name = name
        self._file = os.open(Path(folder) / f"{name}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._now = time.time  # the right clock, also where a test sets another one later

    def write(self, kind: Kind, **fields: object) -> None:
        line = json.dumps({"kind": kind, "by": self._name, "at": self._now(), **fields})
        os.write(self._file, line.encode() + b"\n")


class Ledger:
    """Reads the files of all processes, as they grow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[Entry] = []
        self._read: dict[Path, int] = {}
        self._counts: Counter[Kind] = Counter()

    def refresh(self) -> list[Entry]:
        """Reads what was added since the last call. Returns all entries so far."""
        for path in sorted(self.folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                lines = file.read()
            whole = lines.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            new = [_entry(line) for line in lines[:whole].splitlines()]
            self.entries += new
            self._counts.update(entry.kind for entry in new)
        return self.entries

    def count(self, kind: Kind) -> int:
        self.refresh()
        return self._counts[kind]

    def of(self, kind: Kind) -> Iterator[Entry]:
        return (entry for entry in self.refresh() if entry.kind is kind)


def _entry(line: bytes) -> Entry:
    fields = json.loads(line)
    return Entry(**{**fields, "kind": Kind(fields["kind"])})
