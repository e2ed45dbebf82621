"""Reports the progress of a command."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Called at the beginning of a stage and during it; `total` is None where it is unknown."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Reports nothing."""
