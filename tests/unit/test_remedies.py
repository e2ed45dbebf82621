"""A value that is not JSON is refused with the expression that makes it one."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import json
import pathlib
import types
import uuid
from collections import deque

import attrs
import numpy as np
import pandas as pd
import pydantic
import pytest

from jobwire.codec import dumps
from jobwire.errors import InvalidOption


class Letter(pydantic.BaseModel):
    to: str = "a@example.com"
    at: dt.datetime = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


class Colour(enum.Enum):
    RED = "red"


class Rights(enum.Flag):
    READ = 1


@attrs.define
class Point:
    x: int = 1


VALUES = [
    (Letter(), 'value.model_dump(mode="json")'),
    (Colour.RED, "value.value"),
    (Rights.READ, "value.value"),
    (pathlib.Path("/tmp"), "str(value)"),
    (pathlib.PurePosixPath("a/b"), "str(value)"),
    (ipaddress.ip_address("127.0.0.1"), "str(value)"),
    (uuid.UUID(int=1), "str(value)"),
    (decimal.Decimal("1.5"), "str(value)"),
    (fractions.Fraction(1, 3), "str(value)"),
    (dt.datetime(2030, 1, 1, tzinfo=dt.UTC), "value.isoformat()"),
    (dt.timedelta(seconds=5), "value.total_seconds()"),
    (pd.Timestamp("2030-01-01"), "value.isoformat()"),
    (pd.NaT, "None"),
    (pd.Series([1, 2]), "value.tolist()"),
    (pd.DataFrame({"a": [1, 2]}), 'value.to_dict("records")'),
    (np.int64(3), "value.item()"),
    (np.float32(0.5), "value.item()"),
    (np.bool_(True), "value.item()"),
    (np.array([[1, 2]]), "value.tolist()"),
    (np.datetime64("2030-01-01"), "str(value)"),
    (Point(), "attrs.asdict(value)"),
    ((n for n in range(3)), "list(value)"),
    (map(str, [1]), "list(value)"),
    ({"a": 1}.keys(), "list(value)"),
    ({"a": 1}.values(), "list(value)"),
    ({"a": 1}.items(), "dict(value)"),
    (types.MappingProxyType({"a": 1}), "dict(value)"),
    (range(3), "list(value)"),
    (deque([1]), "list(value)"),
    ({"b", "a"}, "sorted(value)"),
    (b"x", "base64.b64encode(value).decode()"),
    (ValueError("no"), "str(value)"),
    (1 + 2j, "[value.real, value.imag]"),
]


@pytest.mark.parametrize(("value", "remedy"), VALUES, ids=[type(value).__name__ for value, _ in VALUES])
def test_a_value_is_refused_with_what_to_send_and_that_can_be_sent(value, remedy):
    with pytest.raises(InvalidOption) as refusal:
        dumps({"key": value})
    assert refusal.value.field == "data.key"
    assert refusal.value.rule.endswith(f"is not a JSON value; send {remedy}")
    known = {"value": value, "attrs": attrs, "base64": base64}
    assert json.loads(dumps({"key": eval(remedy, known)}))["key"] != "never"


def test_packages_that_are_not_there_are_known_by_name():
    struct = type("Struct", (), {"__module__": "msgspec", "__qualname__": "Struct"})
    with pytest.raises(InvalidOption, match=r"send msgspec\.to_builtins\(value\)"):
        dumps(type("Order", (struct,), {})())


async def test_a_coroutine_is_refused_with_the_await_that_was_forgotten():
    coroutine = asyncio.sleep(0)
    with pytest.raises(InvalidOption, match="send await value"):
        dumps(coroutine)
    await coroutine


def test_texts_and_numbers_of_other_kinds_are_written_as_what_they_hold():
    class Name(enum.StrEnum):
        ADA = "ada"

    class Level(enum.IntEnum):
        HIGH = 3

    class Old(str, enum.Enum):  # noqa: UP042 - as it was written before StrEnum
        TEXT = "text"

    given = {"a": Name.ADA, "b": Level.HIGH, "c": Old.TEXT, "d": np.float64(0.5), "e": np.str_("x"), Name.ADA: 1}
    assert dumps(given) == b'{"a":"ada","b":3,"c":"text","d":0.5,"e":"x","ada":1}'
