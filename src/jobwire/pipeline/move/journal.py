"""The journal of a move, kept in the lake: the same command given again continues from the step that it records.

    planned → paused → frozen → copying → verified → cut → ended

Each step can be repeated. `frozen`: the manifest, a table of exactly the jobs that are moved, is written; from here on
the source is not asked again what to move. Jobs up to the rank `cutting` are being removed from the source: after a
crash, one of these that is gone was removed by the move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from jobwire.pipeline.lake.lake import Lake

STEPS = ("planned", "paused", "frozen", "copying", "verified", "cut", "ended")


@dataclass
class Journal:
    """The state of one move."""

    name: str
    step: str = "planned"
    source_was_paused: bool = False
    target_was_paused: bool = False
    frozen_at: float = 0.0
    moving: int = 0
    priorities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    left: int = 0
    """Jobs that could not be moved and stay in the source."""
    removed: int = -1
    """Jobs up to this rank have been removed from the source."""
    cutting: int = -1
    taken_back: int = 0
    finished: int = 0
    verified: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    schedules: list[str] = field(default_factory=list[str])

    def reached(self, step: str) -> bool:
        return STEPS.index(self.step) >= STEPS.index(step)

    def save(self, lake: Lake) -> None:
        lake.files.write(f"{folder(self.name)}/journal.json", asdict(self))

    def enter(self, step: str, lake: Lake) -> None:
        self.step = step
        self.save(lake)

    def end(self, lake: Lake) -> None:
        """Marks the move as ended and removes its files."""
        self.enter("ended", lake)
        lake.files.remove(folder(self.name))

    @classmethod
    def found(cls, name: str, lake: Lake) -> Journal | None:
        """Returns the journal of a move that was interrupted, or None."""
        note = lake.files.read(f"{folder(name)}/journal.json")
        return None if note is None or note["step"] == "ended" else cls(**note)


def folder(name: str) -> str:
    return f"workings/{name}"
