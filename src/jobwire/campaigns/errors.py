"""Errors of looking things up by id or by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jobwire.errors import JobwireError
from jobwire.spelling import closest


class NotFound(JobwireError, LookupError):
    """There is no row with this id or name."""

    def __init__(self, kind: str, key: str, known: Iterable[str] = ()) -> None:
        near = closest(key, known)
        super().__init__(f"there is no {kind} {key!r}" + (f"; did you mean {near!r}?" if near else ""))
        self.kind = kind
        self.key = key

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.key)


class Ambiguous(JobwireError, LookupError):
    """Several rows have this name: use an id."""

    def __init__(self, kind: str, name: str, ids: Sequence[str]) -> None:
        super().__init__(f"several rows are a {kind} {name!r}: use one of the ids {', '.join(ids)}")
        self.kind = kind
        self.name = name
        self.ids = tuple(ids)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.name, self.ids)
