"""Compositions are checked when they are made. Blocking code and child processes have them, too."""

from __future__ import annotations

import re
from typing import Any

import pytest

from jobwire import App, InvalidOption, JobFailed, chain, chord, group, previous, sync
from tasks import composed_program as program

app = App("memory:composing")


@app.task
async def charge(order: int) -> str:
    return "receipt"


@app.task
async def ship(receipt: str, express: bool = False) -> float:
    return 1.5


@app.task
async def count(page: int) -> int:
    return page


@app.task
async def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
async def two(a: int, b: int) -> None: ...


@app.task
async def anything(value: Any) -> Any: ...


@app.task
async def optional(value: str | None) -> int | None: ...


@app.task
async def weigh(weight: float) -> float:
    return weight


REFUSED: list[tuple[Any, str]] = [
    (chain, "steps: needs at least one call"),
    (lambda: chain(charge.s(), ship.s()), "steps[0]: lacks order, required by task charge"),
    (lambda: chain(charge.s(previous), ship.s()), "steps[0]: has order=previous, and there is no step before it"),
    (lambda: group(charge.s(1), charge.s()), "members[1]: lacks order, required by task charge"),
    (lambda: chain(charge.s(1), two.s()), "steps[1]: lacks a, b of task two: give all but one"),
    (lambda: chain(count.s(1), two.s(previous)), "steps[1]: lacks b, required by task two"),
    (lambda: chain(count.s(1), two.s(previous, previous)), "steps[1]: has several parameters given as previous: a, b"),
    (lambda: chain(count.s(1), ship.s()), "steps[1]: takes str as receipt, and task count before it returns int"),
    (
        lambda: chain(charge.s(1), ship.s(), anything.s(), ship.s(), charge.s()),
        "steps[4]: takes int as order, and task ship before it returns float",
    ),
    (lambda: chain(two.s(1, 2), ship.s()), "steps[1]: takes str as receipt, and task two before it returns None"),
    (
        lambda: chord([count.s(1)], ship.s()),
        "steps[1]: takes str as receipt, and gets the list of the results of a group",
    ),
    (
        lambda: chord([count.s(1), charge.s(1)], total.s()),
        "steps[1]: takes list[int] as numbers, and task charge of the group returns str",
    ),
    (lambda: chain(charge.s(1), group(ship.s("r"))), "steps[1]: is or has a group, which can only be the first step"),
    (lambda: chain(charge.s(1), chord([count.s(1)], total.s())), "steps[1]: is or has a group"),
    (lambda: chain(charge.s(1), chain(ship.s("r"))), "steps[1]: is a chain: give its steps to the outer one"),
    (lambda: chain(group(count.s(1))), "needs a call after the group"),
    (lambda: group(group(count.s(1))), "members[0]: is a group: give its members to the outer one"),
    (lambda: chain(charge, ship.s()), "steps[0]: must be a call of a task"),
    (lambda: chain(charge.s(1), ship), "steps[1]: must be a call of a task"),
    (lambda: group(5), "members[0]: must be a call of a task"),
    (lambda: chord(count.s(1), total.s()), "members: must be a group or a list of calls"),
    (lambda: charge.s("seven"), "order: must be int, not str"),
    (lambda: charge.s(ordr=7), "ordr: is not a parameter of task charge; did you mean order"),
    (lambda: two.s(b="x"), "b: must be int, not str"),
    (lambda: charge.options(transaction=object()).s(1), "transaction: can't be used in a chain, group or chord"),
    (lambda: chain(count.s(1), charge.options(id="x").s()), "steps[1].id: can't be given to a step of a chain"),
]


@pytest.mark.parametrize(("make", "rule"), REFUSED, ids=[rule[:45] for _, rule in REFUSED])
def test_a_composition_that_can_not_work_is_refused_when_it_is_made(make: Any, rule: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(rule)):
        make()


def test_types_that_may_fit_are_left_to_the_worker() -> None:
    chain(count.s(1), weigh.s())  # a whole number is a number
    chain(anything.s(1), ship.s(), anything.s())
    chain(charge.s(1), optional.s(), count.s())
    chord([count.s(1), anything.s(2)], total.s())
    chord([count.s(1)], anything.s())
    chain(optional.s("x"), ship.s("r", express=previous))  # in place of a default


def test_tasks_of_different_stores_can_not_be_composed() -> None:
    other = App("memory:other")

    @other.task
    async def there(number: int) -> int:
        return number

    with pytest.raises(InvalidOption, match="must be calls of tasks of one store"):
        chain(count.s(1), there.s())
    with pytest.raises(InvalidOption, match="must be calls of tasks of one store"):
        group(count.s(1), there.s(1))


async def test_a_task_can_not_be_added_without_its_arguments() -> None:
    with pytest.raises(InvalidOption, match="order: is required by task charge"):
        await charge.add()  # type: ignore[call-arg]
    with pytest.raises(InvalidOption, match="order: must be int"):
        await charge.add(previous)


def test_what_a_composition_is_called() -> None:
    made = chain(group(count.s(1), count.s(2)), total.s(), count.s())
    assert repr(made) == "<Chain <Group of 2> → total → count>"
    assert repr(count.s(1)) == "<Call of count>"


@pytest.mark.slow
async def test_a_child_process_gets_the_results() -> None:
    async with program.app, program.app.worker():
        job = await chain(program.double.s(4), program.add.s(b=1), program.double.s()).add()
        assert await job.wait(60) == 18
        assert await (await chord([program.double.s(n) for n in range(3)], program.total.s()).add()).wait(60) == 6


def test_blocking_code_composes_tasks() -> None:
    blocking = sync.App("memory:composing_in_threads")

    @blocking.task
    def half(number: int) -> float:
        return number / 2

    @blocking.task
    def shown(value: float, unit: str = "m") -> str:
        return f"{value} {unit}"

    @blocking.task
    def joined(texts: list[str]) -> str:
        return ", ".join(texts)

    @blocking.task(attempts=1)
    def bad(number: int) -> int:
        raise ValueError("bad")

    with blocking, blocking.worker():
        job = sync.chain(half.s(3), shown.s(unit="km")).add()
        assert isinstance(job, sync.Job)
        assert job.wait(30) == "1.5 km"
        jobs = sync.group(half.s(1), half.s(2)).add()
        assert jobs.wait(30) == [0.5, 1.0]
        assert (len(jobs), jobs[1].wait(30), [job.wait(1) for job in jobs]) == (2, 1.0, [0.5, 1.0])
        texts = [sync.chain(half.s(n), shown.s(sync.previous)) for n in (1, 2)]
        assert sync.chord(texts, joined.s()).add().wait(30) == "0.5 m, 1.0 m"
        assert sync.chord(sync.group(*texts), joined.s()).add().wait(30) == "0.5 m, 1.0 m"
        with pytest.raises(JobFailed, match="bad"):
            sync.group(bad.s(1)).add().wait(30)
