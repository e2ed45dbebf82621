"""Types that tasks in these tests take and return. They are here, since annotations must be importable."""

from __future__ import annotations

import dataclasses
import enum
from typing import NotRequired, TypedDict

import attrs
import msgspec
import pydantic


class Plan(enum.Enum):
    FREE = "free"
    PRO = "pro"


@dataclasses.dataclass
class Line:
    sku: str
    count: int = 1


@dataclasses.dataclass
class Order:
    id: int
    lines: list[Line] = dataclasses.field(default_factory=list)


class Address(TypedDict):
    street: str
    flat: NotRequired[int]


class Point(msgspec.Struct):
    x: float
    y: float = 0.0


@attrs.define
class Size:
    width: int
    height: int = 1


class Person(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(default=0, ge=0)
    friends: list[Person] = []
