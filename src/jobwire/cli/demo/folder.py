"""The folder of a demo. A demo deletes all jobs in its queues first, so two must not share a folder."""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from jobwire.cli.session import display
from jobwire.errors import JobwireError


class DemoRunning(JobwireError):
    """Another demo is running in this folder."""


@contextmanager
def reserved(folder: Path) -> Generator[None]:
    """Locks the folder for the block. The lock is freed when the process ends, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    with (folder / "demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoRunning(f"another demo is running in {display(folder)}: wait, or give a --folder") from None
        yield
