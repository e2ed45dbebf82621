"""Processes that fork while they have queues and workers: parent and child each go on with connections of their own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conformance.conftest import PROTOCOLS
from warm_program import WarmProgram

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


@pytest.fixture(scope="session")
def program() -> Iterator[WarmProgram]:
    # From Python 3.12 on a process that forks beside its threads is warned.
    with closing(WarmProgram(PROGRAM, "-W", "ignore::DeprecationWarning")) as program:
        yield program


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_parent_and_forked_child_both_use_the_queue(
    url: str, scenario: str, program: WarmProgram, tmp_path: Path
) -> None:
    run(program, scenario, url, tmp_path)


@pytest.mark.parametrize("url", ["memory:", "memory:orders"])
def test_a_store_inside_the_process_is_not_shared_with_a_forked_child(
    url: str, program: WarmProgram, tmp_path: Path
) -> None:
    run(program, "in_memory", url, tmp_path)


def run(program: WarmProgram, scenario: str, url: str, folder: Path) -> None:
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as err:
        code = program.start(scenario, url, stdout=out.fileno(), stderr=err.fileno()).wait()
        out.seek(0)
        err.seek(0)
        assert (code, out.read(), err.read()) == (0, "done\n", "")
