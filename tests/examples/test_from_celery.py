"""The example of Celery tasks that were moved over."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import jobwire

from .conftest import EXAMPLES

PAGE = EXAMPLES.parent / "docs" / "from-celery.md"


@pytest.mark.parametrize("store", ["a server", "memory:"])
def test_the_example_runs(request: pytest.FixtureRequest, tmp_path: Path, store: str) -> None:
    url = store if store == "memory:" else request.getfixturevalue("jobwire_url")
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / "from_celery.py"],
        cwd=tmp_path,
        env={**os.environ, "JOBWIRE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "7: 12.00",
        "the limit of the card is 1000.00",
        "a.png@100 b.png@50",
        "['c@100', 'd@100']",
        "parcel 17 is there",
        "0 3 * * * Europe/Berlin",
        "['charge: the limit of the card is 1000.00']",
    ]


def test_the_page_names_only_what_exists() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    ours = " ".join(row[2] for row in rows)
    named = {*re.findall(r"\b([A-Z]\w+)[(.]", ours)}
    assert named == {"App", "Backoff", "Depends", "Keep", "Rate", "Snooze", "Unrecoverable"}
    assert [name for name in named if not hasattr(jobwire, name)] == []
    methods = {*re.findall(r"\bt\.(\w+)\(", ours)}
    assert methods == {"add", "add_many", "get", "options", "schedule", "wait"}
    assert [name for name in methods if not hasattr(jobwire.Task, name)] == []
    options = {*re.findall(r"options\((\w+)=", ours)}
    assert options == {"delay", "expires", "id", "run_at"}
    assert options <= jobwire.options.JobOptions.__annotations__.keys()
