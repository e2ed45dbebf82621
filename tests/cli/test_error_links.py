"""At a terminal, an error is followed by the address of the page that explains it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from jobwire.errors import DOCS


def complaint(*, terminal: bool) -> str:
    """Returns what a refused command writes on stderr."""
    command = [sys.executable, "-m", "jobwire", "counts", "emails", "--url", "bullmq+redis://127.0.0.1:1"]
    if not terminal:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
    ours, theirs = pty.openpty()
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stderr=theirs, timeout=60, check=False)
        return os.read(ours, 10_000).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.slow
def test_a_terminal_shows_where_an_error_is_explained_and_a_file_does_not() -> None:
    sentence = complaint(terminal=False)
    assert sentence.startswith("jobwire: bullmq+redis://127.0.0.1:1 is unavailable")
    assert sentence.count("\n") == 1
    assert complaint(terminal=True) == f"{sentence}see {DOCS}errors/#storeunavailable\n"
