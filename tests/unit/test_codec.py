"""JSON in and out: what is written, what is refused and with which path, what is read from strangers."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import decimal
import doctest
import enum
import math
import pickle
import sys
import uuid
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire import codec
from jobwire.codec import check_size, dumps, loads
from jobwire.errors import InvalidOption, JobwireError, MalformedPayload, PayloadTooLarge
from jobwire.javascript_json import MAX_DEPTH, MAX_SAFE_INTEGER


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Ratio(float):
    pass


class Plain(enum.Enum):
    ONE = 1


@dataclasses.dataclass
class Point:
    x: int


Pair = namedtuple("Pair", "left right")

any_text = st.text(st.characters(exclude_categories=[]), max_size=12)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda children: st.lists(children, max_size=5) | st.dictionaries(any_text, children, max_size=5),
    max_leaves=20,
)


def nested(levels: int, *innermost: object) -> Any:
    value: Any = [*innermost]
    for _ in range(levels - 1):
        value = [value]
    return value


def as_javascript_holds_it(value: Any) -> Any:
    """Surrogate pairs joined, every number a double: what two JSON values must share to be the same in Node."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if isinstance(value, dict):
        return {as_javascript_holds_it(key): as_javascript_holds_it(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_javascript_holds_it(each) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return value


def test_the_examples_in_the_docstrings_run() -> None:
    assert doctest.testmod(codec).failed == 0
    assert doctest.testmod(codec).attempted > 0


@given(json_values)
def test_what_is_written_is_read_back(value: Any) -> None:
    expected = as_javascript_holds_it(value)
    if isinstance(expected, dict) and len(expected) < len(value):
        return  # two keys that are one key in JavaScript
    assert as_javascript_holds_it(loads(dumps(value))) == expected


@given(st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | st.text(max_size=20))
def test_integers_and_texts_come_back_as_the_very_same_value(value: int | str) -> None:
    assert loads(dumps({"value": [value]})) == {"value": [value]}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1e-7, "1e-7"),
        (0.000001, "0.000001"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
        (5e-324, "5e-324"),
        (2.0**53, "9007199254740992"),
        (2.0**55, "36028797018963970"),
    ],
)
def test_floats_are_printed_as_javascript_prints_them(value: float, written: str) -> None:
    assert dumps(value) == written.encode()
    assert dumps({"n": [value]}) == f'{{"n":[{written}]}}'.encode()


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"b": 1, "a": 2, "7": 3}, '{"b":1,"a":2,"7":3}'),
        ((1, (2, 3)), "[1,[2,3]]"),
        (Pair(1, "x"), '[1,"x"]'),
        (OrderedDict(z=1, a=2), '{"z":1,"a":2}'),
        ({Colour.RED: Level.HIGH}, '{"red":3}'),
        ([Colour.RED, Ratio(0.5), Ratio(2.0)], '["red",0.5,2]'),
        ('\x00\x1f\x7f\u2028é😀"\\/', '"\\u0000\\u001f\x7f\u2028é😀\\"\\\\/"'),
        ([True, False, None, "", {}, []], '[true,false,null,"",{},[]]'),
        ("a\ud83db", '"a\\ud83db"'),
        ("\ude00\ud83d", '"\\ude00\\ud83d"'),
        ("\ud83d\ude00", '"😀"'),
        ({"\udfff": ["x\ud800", 2.0]}, '{"\\udfff":["x\\ud800",2]}'),
    ],
)
def test_values_are_written_compactly_in_utf8_with_keys_in_order(value: Any, written: str) -> None:
    assert dumps(value) == written.encode()


@pytest.mark.parametrize(
    ("value", "path", "rule"),
    [
        ({"items": [1, 2, 3, {"price": math.nan}]}, "data.items[3].price", "finite"),
        ({"a": -math.inf}, "data.a", "finite"),
        (math.inf, "data", "finite"),
        ({"id": MAX_SAFE_INTEGER + 1}, "data.id", "send it as a string"),
        ([-MAX_SAFE_INTEGER - 1], "data[0]", "send it as a string"),
        ({"id": 10**6000}, "data.id", "send it as a string"),
        ({"a": {1: "x"}}, "data.a", "string keys"),
        ({None: 1}, "data", "string keys"),
        ({True: 1}, "data", "string keys"),
        ({("a", "b"): 1}, "data", "string keys"),
        ({10**6000: 1}, "data", "string keys"),
        ({"at": dt.datetime(2030, 1, 1, tzinfo=dt.UTC)}, "data.at", "value.isoformat()"),
        ({"on": dt.date(2030, 1, 1)}, "data.on", "value.isoformat()"),
        ({"price": decimal.Decimal("1.5")}, "data.price", "str(value)"),
        ({"id": uuid.UUID(int=1)}, "data.id", "str(value)"),
        ([b"x"], "data[0]", "base64"),
        ({"tags": {"a"}}, "data.tags", "sorted(value)"),
        ({"point": Point(1)}, "data.point", "dataclasses.asdict"),
        ({"kind": Plain.ONE}, "data.kind", "Plain is not a JSON value"),
        ({"f": print}, "data.f", "not a JSON value"),
        ({"strange key": {"x.y": {1}}}, 'data["strange key"]["x.y"]', "not a JSON value"),
        ({"k" * 500: {1}}, 'data["' + "k" * 40 + '\\u2026"]', "not a JSON value"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value: Any, path: str, rule: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        dumps(value)
    assert caught.value.field == path
    assert rule in caught.value.rule
    assert pickle.loads(pickle.dumps(caught.value)).rule == caught.value.rule


def test_the_path_starts_with_the_name_of_the_field() -> None:
    with pytest.raises(InvalidOption, match=r"^result\[1\]: "):
        dumps([0, math.nan], field="result")


def test_a_refused_value_is_named_by_its_type_and_not_shown() -> None:
    with pytest.raises(InvalidOption) as caught:
        dumps({"token": b"hunter2"})
    assert "bytes" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("extra", [None, 1.0])
def test_a_value_that_contains_itself_is_refused(extra: object) -> None:
    ring: dict[str, Any] = {"extra": extra, "next": {}}
    ring["next"]["back"] = [ring, ring]
    with pytest.raises(InvalidOption, match="contains itself") as caught:
        dumps(ring)
    assert caught.value.field == "data.next.back[0]"


def test_the_same_value_in_two_places_is_no_cycle() -> None:
    shared = {"price": 1.0}
    assert dumps([shared, shared]) == b'[{"price":1},{"price":1}]'


def test_nesting_is_written_up_to_the_limit_and_refused_beyond_it() -> None:
    for innermost, written in ((None, b"null"), (1.0, b"1")):  # orjson's own way and the rewritten one
        assert dumps(nested(MAX_DEPTH, innermost)) == b"[" * MAX_DEPTH + written + b"]" * MAX_DEPTH
        for levels in (MAX_DEPTH + 1, 100_000):
            with pytest.raises(InvalidOption, match=f"deeper than {MAX_DEPTH}"):
                dumps(nested(levels, innermost))


@pytest.mark.parametrize("innermost", ["null", "1.0", '"\\ud800"', "12345678901234567890"])
def test_nesting_is_read_up_to_the_limit_and_refused_beyond_it(innermost: str) -> None:
    """By each of the ways in which a value is read: as it is, with floats, and by the exact parser."""
    for levels in (1, MAX_DEPTH):
        loads("[" * levels + innermost + "]" * levels)
        loads(('{"a":' * levels + innermost + "}" * levels).encode())
    for levels in (MAX_DEPTH + 1, 1000, 5000):
        with pytest.raises(MalformedPayload, match=f"nested deeper than {MAX_DEPTH} levels at character {MAX_DEPTH} "):
            loads("[" * levels + innermost + "]" * levels)
        with pytest.raises(MalformedPayload, match=f"nested deeper than {MAX_DEPTH} levels"):
            loads(('{"a":' * levels + innermost + "}" * levels).encode())


def test_brackets_in_texts_and_side_by_side_are_no_nesting() -> None:
    assert loads('["' + "[" * 400 + '\\"[[", 1.0]') == ["[" * 400 + '"[[', 1.0]
    assert loads("[" + "[1.0]," * 400 + "[]]") == [[1.0]] * 400 + [[]]
    assert loads('["\\ud800",' + "[]," * 400 + "{}]") == ["\ud800", *[[]] * 400, {}]


def test_a_caller_with_little_stack_left_gets_no_recursion_error() -> None:
    depth_of_refusal: list[str] = []

    def descend() -> None:
        with contextlib.suppress(RecursionError):
            descend()
        try:
            dumps(nested(MAX_DEPTH))
        except InvalidOption as refused:
            depth_of_refusal.append(refused.rule)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(600)
    try:
        with contextlib.suppress(RecursionError):  # of this test's own frames
            descend()
    finally:
        sys.setrecursionlimit(limit)
    assert "is nested too deeply for the stack that is left" in depth_of_refusal


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        (b"[-9223372036854775809, 18446744073709551616]", [-9223372036854775809, 18446744073709551616]),
        (b'[1.5, "12345678901234567890"]', [1.5, "12345678901234567890"]),
        ('{"a": 1, "a": 2}', {"a": 2}),
        (b'"\\ud83d"', "\ud83d"),
        (b'{"\\udc00": "\\ud83d\\ude00"}', {"\udc00": "😀"}),
        (" [1.0, 1e3] \n", [1.0, 1000.0]),
        (b"null", None),
        (b'"\\u0000"', "\x00"),
    ],
)
def test_what_other_clients_write_is_read_exactly(raw: bytes | str, value: Any) -> None:
    assert loads(raw) == value
    assert type(loads(raw)) is type(value)


@pytest.mark.parametrize(
    ("raw", "reason", "position"),
    [
        (b"", "Expecting value", 0),
        (b"{bad json}", "property name", 1),
        (b'{"a": NaN}', "NaN is not a JSON number", 6),
        (b"[-Infinity]", "-Infinity is not a JSON number", 1),
        (b"[1e999]", "number out of range", 1),
        (b"[" + b"1" * 5000 + b"]", "too many digits", 1),
        ('"é\n"', "Invalid control character", 2),
        ('"é'.encode() + b'\xff"', "invalid UTF-8", 2),
        (b'"\xed\xa0\x80"', "invalid UTF-8", 1),
        (b"\xef\xbb\xbf1", "BOM", 0),
        (b"[1] x", "Extra data", 4),
        (b"[" * 100_000, f"nested deeper than {MAX_DEPTH} levels", MAX_DEPTH),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, f"nested deeper than {MAX_DEPTH} levels", 5 * MAX_DEPTH),
    ],
)
def test_what_is_not_json_is_refused_with_the_place(raw: bytes | str, reason: str, position: int) -> None:
    with pytest.raises(MalformedPayload) as caught:
        loads(raw)
    assert reason in str(caught.value)
    assert f"at character {position} of" in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, JobwireError)


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_reading_anything_gives_a_value_or_a_malformed_payload(raw: bytes | str) -> None:
    try:
        text = repr(loads(raw))
    except MalformedPayload as refused:
        text = str(refused)
    assert len(text) < 2000


@pytest.mark.parametrize("raw", ["x-secret-token", '{"password": "hunter2", oops}' * 50])
def test_an_error_never_shows_the_whole_payload(raw: str) -> None:
    with pytest.raises(MalformedPayload) as caught:
        loads(raw)
    assert raw not in str(caught.value)
    assert len(str(caught.value)) < 200
    assert caught.value.__context__ is None


def test_a_payload_one_byte_too_large_is_told_from_its_limit() -> None:
    with pytest.raises(PayloadTooLarge, match=r"^Job payload size 10,485,761 bytes exceeds limit of 10,485,760 bytes$"):
        check_size(10 * 1024 * 1024 + 1, 10 * 1024 * 1024)


def test_a_payload_over_the_limit_is_refused_and_one_at_the_limit_is_not() -> None:
    check_size(1024, 1024)
    with pytest.raises(PayloadTooLarge, match=r"^Job payload size 12\.3 MB exceeds limit of 10\.0 MB$"):
        check_size(12_897_485, 10 * 1024 * 1024)
