"""Two libraries on one queue: one produces and administers, the other works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .rig import OF_A_WORKER, Interpreter

_WORKS = OF_A_WORKER | {"worker", "claim", "stalled", "progress", "log"}


@dataclass(frozen=True)
class Fleet:
    """An interpreter made of two that share a database."""

    producer: Interpreter
    worker: Interpreter

    def run(self, clock: int, step: list[Any]) -> Any:
        if step[0] == "begin":
            self.producer.run(clock, step)
            return self.worker.run(clock, step)
        return (self.worker if step[0] in _WORKS else self.producer).run(clock, step)
