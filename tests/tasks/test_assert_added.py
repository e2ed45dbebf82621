"""`assert_added` checks what was added."""

from __future__ import annotations

import datetime as dt

import pytest

from jobwire import (
    InvalidOption,
    State,
    WrongState,
)
from jobwire.testing import assert_added
from tasks.shapes import Line, Order, Plan
from tasks.tested_app import (
    app,
    child,
    count_lines,
    fail,
    ship,
)

pytestmark = pytest.mark.usefixtures("nothing_seen")


async def test_assert_added_compares_what_is_written():
    async with app.testing() as t:
        day = dt.date(2026, 1, 2)
        await ship.add(Order(1, [Line("a")]), on=day, plan=Plan.PRO)
        await ship.add(Order(2), on=day)
        assert_added(ship)
        assert_added(ship, count=2)
        assert_added(ship, count=2, on=day)
        assert_added(ship, count=1, order=Order(1, [Line("a")]), plan=Plan.PRO)
        assert_added(child, count=0)
        await t.run()
        assert_added(ship, plan=Plan.FREE)


async def test_assert_added_knows_the_fields_of_an_object():
    async with app.testing():
        await count_lines.add(Order(1, [Line("a")]))
        assert_added(count_lines, id=1)
        assert_added(count_lines, order=Order(1, [Line("a")]))
        with pytest.raises(AssertionError, match="id=2"):
            assert_added(count_lines, id=2)
        with pytest.raises(AssertionError, match="no job of task count_lines"):
            assert_added(count_lines, order=Order(1))


async def test_jobs_that_are_deleted_at_their_end_were_added_all_the_same():
    async with app.testing() as t:
        job = await child.options(keep_completed=0).add(1)
        await t.run()
        assert await child.get(job.id) is None
        assert_added(child, count=1, n=1)
        assert [one.state for one in t.added(child)] == [State.COMPLETED]


async def test_a_failed_assertion_shows_what_was_added_nearest_first():
    async with app.testing():
        with pytest.raises(AssertionError) as nothing:
            assert_added(child, n=1)
        assert str(nothing.value) == "no job of task child was added with n=1. Nothing was added at all."
        await fail.add("x")
        await fail.add("y")
        with pytest.raises(AssertionError) as others:
            assert_added(child)
        assert str(others.value) == "no job of task child was added. Added were: fail (2)."
        day = dt.date(2026, 1, 2)
        await ship.add(Order(1), on=day)
        await ship.add(Order(2), on=day, plan=Plan.PRO)
        with pytest.raises(AssertionError) as nearest:
            assert_added(ship, order=Order(1), plan=Plan.PRO, on=dt.date(2026, 1, 2), number=None)
        assert str(nearest.value).splitlines() == [
            "no job of task ship was added with order={'id': 1, 'lines': []}, plan='pro', on='2026-01-02', "
            "number=None. Added of this task, nearest first:",
            "  order={'id': 1, 'lines': []}, on='2026-01-02', plan='free', number=None    (plan differs)",
            "  order={'id': 2, 'lines': []}, on='2026-01-02', plan='pro', number=None    (order differs)",
        ]
        with pytest.raises(AssertionError, match="expected 3 jobs of task ship, but 2 were added"):
            assert_added(ship, count=3)
        with pytest.raises(AssertionError, match="expected no job of task fail with text='x', but 1 was added"):
            assert_added(fail, count=0, text="x")
        with pytest.raises(InvalidOption, match="did you mean order"):
            assert_added(ship, oder=Order(1))


async def test_many_jobs_are_not_all_shown():
    async with app.testing():
        await child.add_many([{"n": n} for n in range(9)])
        with pytest.raises(AssertionError, match="… and 4 more"):
            assert_added(child, n=100)


async def test_assert_added_belongs_inside_of_a_block():
    with pytest.raises(WrongState, match=r"use it inside app\.testing\(\)"):
        assert_added(child)
