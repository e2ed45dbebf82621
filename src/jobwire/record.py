"""Records: dataclasses that are not changed after their creation, and that are created quickly.

A frozen dataclass sets every field by a call: 1.7 µs for the fields of one job, where plain assignment takes 0.3 µs,
and two or three objects are created for each job. For type checkers a record is frozen. At run time it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[Kind]) -> type[Kind]:
    """Makes a class a record."""
    return dataclass(slots=True, unsafe_hash=True)(kind)
