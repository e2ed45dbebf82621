"""Uniqueness by arguments: one job at a time for each value of some parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from jobwire import codec, spelling
from jobwire.checks import Seconds, seconds
from jobwire.errors import InvalidOption
from jobwire.options import Unique

_LONGEST_KEY = 200


@dataclass(frozen=True, slots=True)
class By:
    """The parameters that make a job unique. Made by `by`."""

    names: tuple[str, ...]
    ttl: Seconds | None = None

    def check(self, task: str, parameters: Collection[str]) -> None:
        """Refuses names that are not parameters of the task."""
        for name in self.names:
            if name not in parameters:
                raise spelling.unknown(name, name, parameters, f"task {task}", word="parameter")

    def key(self, task: str, data: Mapping[str, Any]) -> Unique:
        """Returns the unique key of a job with this data."""
        values = codec.dumps([data.get(name) for name in self.names], field="unique").decode()
        if len(values) > _LONGEST_KEY:
            values = hashlib.sha256(values.encode()).hexdigest()
        return Unique(f"{task}:{values}", self.ttl)


@spelling.refuses_typos("by()")
def by(*names: str, for_: Seconds | None = None) -> By:
    """Returns a rule for `unique=`: of the jobs with equal values of these parameters only one is added. It holds until
    that job has finished, or for the given time.

    Examples:
        >>> by("user_id", for_=3600)
        By(names=('user_id',), ttl=3600)
    """
    if not names:
        raise InvalidOption("by", names, "needs the name of a parameter")
    for name in names:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] callers may be untyped
            raise InvalidOption("by", name, "must be the name of a parameter")
    if for_ is not None:
        seconds("for_", for_, minimum=0.001)
    return By(names, for_)
