"""`jobwire worker --store`: a worker of a store that a file names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

HANDLERS = """
def handle(job):
    return f"done {job.data}"
"""


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, jobwire_url: str) -> None:
    """A handler and a profile, in the folder in which commands start."""
    (tmp_path / "jobwire.toml").write_text(f'[stores]\nprod = "{jobwire_url}"\n')
    (tmp_path / "shop.py").write_text(HANDLERS)


@pytest.mark.parametrize("way", ["option", "environment", "processes"])
def test_a_worker_works_on_the_store_of_a_name(
    spawn: Call, on_queue: Call, environment: dict[str, str], way: str
) -> None:
    added = on_queue(lambda queue: queue.add(7))
    more = {"option": ("--store", "prod"), "environment": (), "processes": ("--store", "prod", "--processes", 1)}[way]
    if way == "environment":
        environment["JOBWIRE_STORE"] = "prod"
    said = spawn("worker", "./shop.py:handle", "--queue", "emails", "--burst", *more)
    assert said.code == 0, said
    assert on_queue(lambda queue: queue.get(added.id)).result == "done 7"
