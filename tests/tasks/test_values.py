"""Types and their JSON forms, in both directions."""

from __future__ import annotations

import datetime as dt
import enum
import math
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire import codec
from jobwire.tasks.values import Form, Misfit, to_json
from tasks.shapes import Address, Line, Order, Person, Plan, Point, Size

WHEN = dt.datetime(2026, 11, 16, 15, 4, 5, 250000, dt.UTC)
CASES: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (int, 7, 7),
    (float, 1.5, 1.5),
    (bool, True, True),
    (None, None, None),
    (list[int], [1, 2], [1, 2]),
    (tuple[int, str], (1, "a"), [1, "a"]),
    (set[int], {3}, [3]),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (dict[int, str], {7: "a"}, {"7": "a"}),
    (dt.datetime, WHEN, "2026-11-16T15:04:05.250000Z"),
    (dt.date, dt.date(2026, 11, 16), "2026-11-16"),
    (dt.time, dt.time(3, 4), "03:04:00"),
    (dt.timedelta, dt.timedelta(days=1, seconds=30), "P1DT30S"),
    (uuid.UUID, uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
    (Decimal, Decimal("1.50"), "1.50"),
    (Plan, Plan.PRO, "pro"),
    (bytes, b"\x00\xff", "AP8="),
    (Literal["a", "b"], "b", "b"),
    (int | None, None, None),
    (Order, Order(1, [Line("s", 2)]), {"id": 1, "lines": [{"sku": "s", "count": 2}]}),
    (Address, {"street": "s"}, {"street": "s"}),
    (Point, Point(1.5), {"x": 1.5, "y": 0.0}),
    (Size, Size(3), {"width": 3, "height": 1}),
    (Person, Person(name="zoë"), {"name": "zoë", "age": 0, "friends": []}),
    (list[Person], [Person(name="a")], [{"name": "a", "age": 0, "friends": []}]),
    (Person | None, None, None),
]


@pytest.mark.parametrize(("kind", "value", "form"), CASES, ids=[str(kind) for kind, *_ in CASES])
def test_a_value_becomes_json_and_the_same_value_again(kind: Any, value: Any, form: Any) -> None:
    stored = codec.loads(codec.dumps(Form(kind).write(value)))
    assert stored == form
    assert Form(kind).read(stored) == value


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (str, 5, "must be str, not int"),
        (str, b"x", "must be str, not bytes"),
        (int, "5", "must be int, not str"),
        (int, 1.5, "must be int, not float"),
        (list[int], [1, "a"], "[1]: must be int, not str"),
        (Plan, "gold", "invalid enum value 'gold'"),
        (Annotated[int, msgspec.Meta(gt=0)], 0, "expected `int` >= 1"),
        (Order, {"lines": []}, "id: is missing"),
        (Order, {"id": 1, "lines": [{"sku": 5}]}, "lines[0].sku: must be str, not int"),
        (Order, Order("1"), "id: must be int, not str"),  # type: ignore[arg-type]
        (Order, Order(1, [Line("s", "2")]), "lines[0].count: must be int, not str"),  # type: ignore[arg-type]
        (Point, Point("1"), "x: must be float, not str"),  # type: ignore[arg-type]
        (Person, {"name": 5}, "name: input should be a valid string"),
        (list[Person], [{"name": "a", "friends": [{"age": -1, "name": "b"}]}], "[0].friends[0].age: input should be"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(Misfit) as refused:
        Form(kind).write(value)
    assert str(refused.value).lower().startswith(message)


class Pool: ...


@pytest.mark.parametrize("kind", [Pool, list[Pool], dict[str, Pool] | None])
def test_a_type_without_a_form_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="Pool has no JSON form"):
        Form(kind)


def test_what_has_no_form_is_refused_by_its_value_too() -> None:
    with pytest.raises(Misfit, match="Pool has no JSON form"):
        to_json({"a": [Pool()]})


class Colour(enum.IntEnum):
    RED = 1


def test_values_without_a_type_are_written_by_what_they_are() -> None:
    assert to_json({"at": WHEN, "who": Person(name="a"), "c": Colour.RED, "s": [1, {2}]}) == {
        "at": "2026-11-16T15:04:05.250000Z",
        "who": {"name": "a", "age": 0, "friends": []},
        "c": 1,
        "s": [1, [2]],
    }


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(JSON)
def test_json_stays_what_it_is(value: Any) -> None:
    assert Form(Any).write(value) == value
    assert Form(Any).read(value) == value


@given(st.from_type(Order) | st.builds(Order, st.integers(), st.lists(st.builds(Line, st.text(), st.integers()))))
def test_orders_survive(order: Order) -> None:
    assert Form(Order).read(Form(Order).write(order)) == order


def test_not_a_number_is_left_to_the_codec_which_refuses_it() -> None:
    assert math.isnan(Form(float).write(math.nan))
