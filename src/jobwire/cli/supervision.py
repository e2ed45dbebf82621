"""The value of the option --supervised, with which a supervisor starts each of its processes."""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Supervision:
    """The file descriptors that a process inherits from its supervisor, and its place among the others.

    >>> Supervision.parse(str(Supervision(pipe=5, number=2, of=4)))
    Supervision(pipe=5, number=2, of=4, reports=-1, watchdog_usec=0)
    """

    pipe: int
    number: int
    of: int
    reports: int = -1
    """A datagram socket for messages as a service manager gets them. -1: there is no service manager."""
    watchdog_usec: int = 0

    def __str__(self) -> str:
        return ",".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls(*map(int, value.split(",")))

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(one for one in (self.pipe, self.reports) if one >= 0)

    def keep_to_itself(self) -> None:
        """Keeps the file descriptors out of the programs that handlers start."""
        for one in self.descriptors:
            os.set_inheritable(one, False)
