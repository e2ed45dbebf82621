"""The decorator for classes of native options: frozen dataclasses that refuse unknown keywords with a suggestion."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

from jobwire.errors import InvalidOption
from jobwire.spelling import refuses_typos

Kind = TypeVar("Kind")

NATIVE: dict[str, str] = {}
"""The correct spelling of each native option, for the error about one that was passed to the worker directly."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
def native(kind: type[Kind]) -> type[Kind]:
    """Makes a class of native options."""
    made: Any = dataclass(frozen=True, slots=True, kw_only=True)(kind)
    NATIVE.update({field.name: f"native={made.__name__}({field.name}=…)" for field in fields(made)})
    return refuses_typos(made.__name__)(made)


def of_kind(kind: type[Kind], given: object, protocol: str) -> Kind:
    """Returns the given native options of a worker, or the defaults. Refuses those of another protocol."""
    if given is None:
        return kind()
    if not isinstance(given, kind):
        raise InvalidOption("native", given, f"must be a jobwire.native.{kind.__name__} for {protocol}")
    return given
