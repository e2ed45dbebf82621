"""Records: dataclasses that nobody changes once they are made, and that are made quickly.

A frozen dataclass sets every field by a call: 1.7 µs for the fields of one job, where plain assignment takes 0.3 µs,
and each job that passes through is made into two or three of them. Type checkers hold a record frozen; at run time
nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[Kind]) -> type[Kind]:
    """Make a class a record."""
    return dataclass(slots=True, unsafe_hash=True)(kind)
