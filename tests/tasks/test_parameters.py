"""From a call's arguments to a job's data, and from a job's data to arguments."""

from __future__ import annotations

from typing import Any

import pytest

from jobwire import InvalidOption
from jobwire.tasks import Depends, InvalidArguments
from jobwire.tasks.parameters import Parameters
from tasks.shapes import Address, Line, Order, Person, Plan, Point, Size


def pool() -> int:
    return 1


def send(to: str, plan: Plan = Plan.FREE, *, tags: list[str] = [], db: int = Depends(pool)) -> None: ...  # noqa: B006


def test_named_arguments_become_one_object_with_all_defaults() -> None:
    parameters = Parameters(send)
    assert parameters.write((), {"to": "a"}) == {"to": "a", "plan": "free", "tags": []}
    assert parameters.write(("a", Plan.PRO), {"tags": ["x"]}) == {"to": "a", "plan": "pro", "tags": ["x"]}
    assert parameters.read({"to": "a", "plan": "pro", "tags": ["x"]}) == {"to": "a", "plan": Plan.PRO, "tags": ["x"]}


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((), {}, "to: is required by task send (got nothing)"),
        ((), {"to": 5}, "to: must be str, not int (got 5)"),
        ((), {"too": "a"}, "too: is not a parameter of task send; did you mean to? (got 'a')"),
        (("a",), {"to": "b"}, "to: is given twice (got 'b')"),
        (("a", Plan.PRO, 3), {}, "arguments: must be at most 2 without a name for task send"),
        ((), {"to": "a", "db": 3}, "db: is a dependency, which the worker provides (got 3)"),
        ((), {"to": "a", "tags": ["x", 5]}, "tags[1]: must be str, not int (got ['x', 5])"),
        ((), {"to": "a", "plan": "gold"}, "plan: invalid enum value 'gold' (got 'gold')"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args: tuple[Any, ...], named: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        Parameters(send).write(args, named)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"to": 5}, "task send: data.to: must be str, not int"),
        ({}, "task send: data.to: is missing"),
        (None, "task send: data.to: is missing"),
        ([1], "task send: data: must be object, not array"),
        ({"to": "a", "tags": ["x", 5]}, "task send: data.tags[1]: must be str, not int"),
    ],
)
def test_data_of_another_producer_that_does_not_fit_is_refused_with_its_path(data: Any, message: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        Parameters(send).read(data)
    assert str(refused.value) == message


def test_an_old_job_gets_the_default_of_a_new_parameter_and_a_newer_one_may_have_more() -> None:
    assert Parameters(send).read({"to": "a", "later": 1}) == {"to": "a", "plan": Plan.FREE, "tags": []}


def test_defaults_are_not_shared_between_jobs() -> None:
    parameters = Parameters(send)
    parameters.read({"to": "a"})["tags"].append("x")
    assert parameters.read({"to": "a"})["tags"] == []


def one_order(order: Order) -> None: ...
def one_address(address: Address) -> None: ...
def one_point(point: Point) -> None: ...
def one_size(size: Size) -> None: ...
def one_person(person: Person) -> None: ...


@pytest.mark.parametrize(
    ("function", "value", "data"),
    [
        (one_order, Order(1, [Line("s")]), {"id": 1, "lines": [{"sku": "s", "count": 1}]}),
        (one_address, {"street": "s", "flat": 3}, {"street": "s", "flat": 3}),
        (one_point, Point(1.0, 2.0), {"x": 1.0, "y": 2.0}),
        (one_size, Size(1, 2), {"width": 1, "height": 2}),
        (one_person, Person(name="a", age=3), {"name": "a", "age": 3, "friends": []}),
    ],
)
def test_a_task_with_one_object_takes_the_object_itself(function: Any, value: Any, data: Any) -> None:
    parameters = Parameters(function)
    assert parameters.write((value,), {}) == data
    assert parameters.write((), {parameters.single: value}) == data
    assert parameters.read(data) == {parameters.single: value}


def test_the_path_inside_one_object_begins_with_its_parameter() -> None:
    with pytest.raises(InvalidOption, match=r"order\.lines\[0\]\.count: must be int, not str"):
        Parameters(one_order).write((Order(1, [Line("s", "x")]),), {})  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match=r"data\.lines\[0\]\.count: must be int, not str"):
        Parameters(one_order).read({"id": 1, "lines": [{"sku": "s", "count": "x"}]})


def optional(count: int = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013


def test_a_default_of_none_allows_none() -> None:
    assert Parameters(optional).write((), {}) == {"count": None}
    assert Parameters(optional).read({"count": None}) == {"count": None}


def no_types(a, b=3):  # type: ignore[no-untyped-def]
    ...


def test_parameters_without_types_take_any_json() -> None:
    assert Parameters(no_types).write((), {"a": {"x": [1]}}) == {"a": {"x": [1]}, "b": 3}


class Pool: ...


def with_pool(to: str, pool: Pool) -> None: ...
def with_rest(*names: str) -> None: ...
def with_named(**names: str) -> None: ...
def returns_pool() -> Pool: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (with_pool, "has a parameter pool that can't be sent: Pool has no JSON form; give it the default Depends"),
        (with_rest, "can't have \\*names: each argument of a job has a name"),
        (with_named, "can't have \\*\\*names"),
        (returns_pool, "returns a type that can't be a job's result: Pool has no JSON form"),
    ],
)
def test_functions_that_can_not_be_tasks_are_refused_when_defined(function: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        Parameters(function)


def test_an_annotation_that_can_not_be_found_is_named() -> None:
    def local(x: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidOption, match="name 'Missing' is not defined"):
        Parameters(local)
