"""The run log of a lake: one file for each run of a command, written when it begins and again when it ends."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from jobwire.pipeline.lake.files import LakeFiles
from jobwire.pipeline.lake.schemas import RUNS

_FOLDER = "runs"
_ID = 24
"""The length of a run's id. What it stages may have a number after it."""
_LONGEST = timedelta(days=7)
"""After this time, a run of another machine or container that has recorded no end counts as dead."""


@dataclass
class Run:
    """A run in progress. What is set here is in its file when it ends, however it ends."""

    command: str
    id: str
    started_at: datetime
    rows_in: int = 0
    rows_out: int = 0
    offsets: dict[str, Any] = field(default_factory=dict[str, Any])
    notes: dict[str, Any] = field(default_factory=dict[str, Any])
    fault: str | None = None
    """The reason for which the run counts as failed although no error ended it."""

    def note(self, **facts: Any) -> None:
        """Adds facts that have no column of their own."""
        self.notes.update(facts)


def day_of(run: str) -> str | None:
    """Returns the day on which a run began, by its id, such as `2026-01-31`. None if the text is not such an id."""
    digits = run[:8]
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if len(digits) == 8 and digits.isdigit() else None


@contextlib.contextmanager
def recorded(files: LakeFiles, command: str, **notes: Any) -> Generator[Run]:
    """Records a run from its beginning to its end: `ok`, `failed` with the error, or `interrupted`."""
    now = datetime.now(UTC)
    run = Run(command, f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}", now, notes=dict(notes))
    _write(files, run, "running")
    try:
        yield run
    except Exception as error:
        _write(files, run, "failed", f"{type(error).__name__}: {error}")
        raise
    except BaseException as stop:
        _write(files, run, "interrupted", type(stop).__name__)
        raise
    _write(files, run, "failed" if run.fault else "ok", run.fault)


def read_runs(root: str) -> list[dict[str, Any]]:
    """Returns every run with the columns of schemas.RUNS, oldest first. Needs no Spark."""
    return rows(LakeFiles(root))


def is_running(files: LakeFiles, run: str) -> bool:
    """Returns whether a run, named by its id or by what it stages, may be under way."""
    content = files.read(f"{_FOLDER}/{run[:_ID]}.json")
    return content is not None and content["outcome"] == "running" and not _is_dead(content)


def rows(files: LakeFiles) -> list[dict[str, Any]]:
    found = [files.read(f"{_FOLDER}/{name}") for name in files.files(_FOLDER)]
    return sorted((_row(each) for each in found if each is not None), key=lambda row: (row["started_at"], row["run"]))


def _write(files: LakeFiles, run: Run, outcome: str, error: str | None = None) -> None:
    content = {
        "run": run.id,
        "command": run.command,
        "started_at": run.started_at.isoformat(),
        "ended_at": None if outcome == "running" else datetime.now(UTC).isoformat(),
        "outcome": outcome,
        "rows_in": run.rows_in,
        "rows_out": run.rows_out,
        "offsets": run.offsets,
        "notes": run.notes,
        "error": error,
        "host": socket.gethostname(),
        "process": os.getpid(),
        "processes": _processes(),
    }
    files.write(f"{_FOLDER}/{run.id}.json", content)


def _row(content: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {name: content.get(name) for name in RUNS.names}
    for name in ("started_at", "ended_at"):
        row[name] = row[name] and datetime.fromisoformat(row[name])
    for name in ("offsets", "notes"):
        row[name] = orjson.dumps(content.get(name)).decode()
    if row["outcome"] == "running" and _is_dead(content):
        row["outcome"] = "interrupted"
    return row


def _is_dead(content: dict[str, Any]) -> bool:
    """Returns True if the run's process is known to be gone: it was killed before it could record its end. Its number
    means something only among the same processes. Runs of earlier versions have recorded the host's name alone."""
    here = _processes()
    if content.get("host") != socket.gethostname() or content.get("processes", here) != here:
        return datetime.now(UTC) - datetime.fromisoformat(content["started_at"]) > _LONGEST
    try:
        os.kill(int(content["process"]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _processes() -> str | None:
    """Returns what identifies the processes that have numbers of their own: one boot of a machine, and in it a
    namespace. Containers may share the host's name and not the numbers. None where the kernel does not offer it."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None
