"""How a class of native options is made: a frozen dataclass of keywords that refuses others with a suggestion."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

from jobwire import spelling
from jobwire.errors import InvalidOption

Kind = TypeVar("Kind")

NATIVE: dict[str, str] = {}
"""For each native option of a worker how it is given, so that one given in the wrong place is told the right one."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def native(kind: type[Kind]) -> type[Kind]:
    """Make a class one of native options."""
    made: Any = dataclass(frozen=True, slots=True, kw_only=True)(kind)
    names = [field.name for field in fields(made)]
    NATIVE.update({name: f"native={made.__name__}({name}=…)" for name in names})
    init = made.__init__

    @functools.wraps(init)
    def checked(self: Any, **given: Any) -> None:
        for name, value in given.items():
            if name not in names:
                raise spelling.unknown(name, value, names, made.__name__)
        init(self, **given)

    made.__init__ = checked
    return made


def of_kind(kind: type[Kind], given: object, protocol: str) -> Kind:
    """The native options of a worker, its protocol's defaults if it was given none."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise InvalidOption("native", given, f"must be a jobwire.native.{kind.__name__} for {protocol}")
    return given
