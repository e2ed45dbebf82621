"""How a command tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called at the beginning of a stage and as it goes on; `total` is None where nobody knows it."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """For callers who don't want to know."""
