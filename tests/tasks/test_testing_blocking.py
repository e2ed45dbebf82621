"""`app.testing()` and `perform_sync` for blocking code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobwire import (
    Depends,
    State,
    sync,
)
from jobwire.testing import assert_added, perform, perform_sync
from tasks.tested_app import (
    NOWHERE,
    seen,
)

pytestmark = pytest.mark.usefixtures("nothing_seen")

blocking = sync.App(NOWHERE)


def settings() -> str:
    raise ConnectionError("no test reads the real settings")


@blocking.task
def halve(number: int, prefix: str = Depends(settings)) -> str:
    seen.append(number)
    if number % 2:
        raise LookupError("odd")
    return f"{prefix}{number // 2}"


@blocking.task
def halve_all(numbers: list[int]) -> None:
    for number in numbers:
        halve.add(number)


@pytest.fixture
def t() -> Iterator[sync.Testing]:
    with blocking.testing(overrides={settings: lambda: "="}) as t:
        yield t


@pytest.mark.parametrize("number", [4, 6])
def test_blocking_code_is_tested_in_the_same_way(t, number):
    job = halve.add(number)
    assert_added(halve, count=1, number=number)
    assert t.run().completed == 1
    assert job.wait(timeout=5) == f"={number // 2}"
    [added] = t.added(halve)
    assert (added.id, added.state) == (job.id, State.COMPLETED)
    halve.options(delay=60).add(8)
    t.clock.advance(60)
    assert t.run().completed == 1


def test_blocking_code_is_tested_eagerly():
    with blocking.testing(eager=True, overrides={settings: lambda: "="}):
        assert halve.add(8).result == "=4"
        halve_all.add([2, 4])
        assert seen == [8, 2, 4]
        with pytest.raises(LookupError, match="odd"):
            halve_all.add([3])


def test_blocking_tasks_are_performed(t):
    assert perform_sync(halve, 8) == "=4"
    assert perform_sync(halve.s(number=8), attempts_made=1) == "=4"


async def test_blocking_tasks_are_performed_in_an_event_loop(t):
    assert await perform(halve, 8) == "=4"
