"""Processes that fork while they have queues and workers: parent and child each go on with connections of their own."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from conformance.conftest import PROTOCOLS

SHARED = [name for name in PROTOCOLS if name != "memory"]
"""Stores that two processes can share."""
PROGRAM = Path(__file__).with_name("forking_program.py")
SCENARIOS = [
    "open_queue",
    "operators",
    "closed_queue",
    "busy_parent",
    "importing_parent",
    "pool",
    "waited_for",
    "worker_in_child",
    "iterator",
    "asynchronous",
]


@pytest.fixture(params=SHARED)
def url(request: pytest.FixtureRequest) -> str:
    return PROTOCOLS[request.param](request, f"t{uuid.uuid4().hex[:12]}")


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_parent_and_forked_child_both_use_the_queue(url: str, scenario: str) -> None:
    run(scenario, url)


@pytest.mark.parametrize("url", ["memory:", "memory:orders"])
def test_a_store_inside_the_process_is_not_shared_with_a_forked_child(url: str) -> None:
    run("in_memory", url)


def run(scenario: str, url: str) -> None:
    # From Python 3.12 on a process that forks beside its threads is warned.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(PROGRAM), scenario, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
