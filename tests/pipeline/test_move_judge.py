"""The judgement of copies, row by row: no store and no Spark needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from jobwire.pipeline.move.judge import COMPARED, JUDGED, Judge
from jobwire.pipeline.move.plan import pause_after

SUMS = ("arrived", "equal", "begun", "missing", "changed", "due_changed", "misplaced")


def row(rank: int, **other: Any) -> dict[str, Any]:
    """A copy that is as it should be."""
    there = {"rank": rank, "source": f"s{rank}", "target": f"t{rank}", "scheduled": False, "content": f"c{rank}"}
    there |= {"is_late": False, "due": None, "found": True, "seen_content": f"c{rank}", "seen_due": None}
    return there | other


def late(rank: int, due: int = 5_000_000, seen: int | None = 5_000_000, **other: Any) -> dict[str, Any]:
    return row(rank, is_late=True, due=due, seen_due=seen, **other)


def absent(rank: int, **other: Any) -> dict[str, Any]:
    return row(rank, found=False, seen_content=None, **other)


def judged(rows: Sequence[dict[str, Any]], moving: int, portion: int = 3) -> list[dict[str, Any]]:
    table = pa.Table.from_pylist(list(rows), schema=COMPARED.arrow)
    batches = Judge("", "mail", moving)(iter(table.to_batches(portion)))
    return [one for batch in batches for one in batch.cast(JUDGED.arrow).to_pylist()]


def sums(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {name: count for name in SUMS if (count := sum(one[name] for one in rows))}


def sound(rows: Sequence[dict[str, Any]]) -> bool:
    """True if the two checksums agree."""
    return sum(one["expected"] or 0 for one in rows) == sum(one["actual"] or 0 for one in rows)


@pytest.fixture(autouse=True)
def held(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The ids that the target holds in other states."""
    ids: set[str] = set()
    monkeypatch.setattr(Judge, "_held", lambda judge, asked: ids & set(asked))
    return ids


def test_copies_as_they_should_be_have_arrived() -> None:
    found = judged([*map(row, range(7)), late(7), late(8, seen=5_000_900)], 9)

    assert sums(found) == {"arrived": 9, "equal": 9}
    assert sound(found)
    assert [(one["rank"], one["id"], one["target"]) for one in found] == [(n, f"s{n}", f"t{n}") for n in range(9)]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (row(4, seen_content="other"), {"changed": 1}),
        (row(4, seen_content=None), {"changed": 1}),
        (late(4, seen=5_001_001), {"changed": 1, "due_changed": 1}),
        (late(4, seen=None), {"changed": 1, "due_changed": 1}),
        (late(4, seen=9_000_000, seen_content="other"), {"changed": 1}),
    ],
    ids=["another payload", "none", "another due time", "no due time", "another payload and due time"],
)
def test_a_copy_that_differs_has_not_arrived(fault: dict[str, Any], expected: dict[str, int]) -> None:
    found = judged([*map(row, range(4)), fault], 5)

    assert sums(found) == {"arrived": 4, "equal": 4, **expected}
    assert not sound(found)


@pytest.mark.parametrize(
    ("order", "misplaced"),
    [([1, 0, 2, 3], 1), ([1, 2, 3, 0], 1), ([3, 0, 1, 2], 3), ([3, 2, 1, 0], 3), ([0, 2, 1, 3], 1)],
)
def test_those_that_run_after_a_job_that_should_run_after_them_are_out_of_order(
    order: list[int], misplaced: int
) -> None:
    found = judged(list(map(row, order)), 4)

    assert sums(found) == {"arrived": 4, "equal": 4, "misplaced": misplaced}
    assert not sound(found)


def test_a_copy_that_is_not_there_is_missing_and_one_that_has_begun_is_not(held: set[str]) -> None:
    held |= {"t0", "t5", "t6"}

    begun = judged([absent(0), absent(5), absent(6, is_late=True, due=1), *map(row, range(1, 5))], 7)
    missing = judged([absent(2), absent(5), row(0), row(1), row(3), row(4)], 6)

    assert sums(begun) == {"arrived": 7, "equal": 4, "begun": 3}
    assert sound(begun), "jobs that have begun are in neither checksum, and leave no gap in the order"
    assert sums(missing) == {"arrived": 5, "equal": 4, "begun": 1, "missing": 1}
    assert not sound(missing)


def test_a_copy_that_was_read_twice_is_judged_once() -> None:
    found = judged([row(0), row(1), row(0), row(2), late(3), late(3)], 4, portion=2)

    assert sums(found) == {"arrived": 4, "equal": 4}
    assert sound(found)


@pytest.mark.parametrize(("examined", "took"), [(11.1, 9.0), (0.75, 4.5), (11.65, 18.8), (5.4, 12.8), (100.0, 400.0)])
def test_the_pause_of_a_move_that_was_measured_is_within_its_estimate(examined: float, took: float) -> None:
    least, most = pause_after(examined)
    assert least <= took <= most
