"""In which order a queue would run its jobs, and how that order is said in another protocol's words.

Priorities are compared by level: higher runs earlier, 0 is what a job without a priority has. BullMQ runs low numbers
first, 0 before all, so its levels are 0 and below; pg-boss runs high numbers first; BridgeMQ tells two classes apart;
Monque runs by due time alone. A store that orders by arrival gets the jobs in their order, so that jobs of one level
keep theirs as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column

FRONT_FROM, FRONT, MIDDLE = 7, 7, 5
"""BridgeMQ: from which number on a job goes to the front of the list; what jobs of the two classes are given."""
LOWEST_BULLMQ = 2_097_151


def level(protocol: str) -> Column:
    """The level of a row of the table `jobs`."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    priority = F.coalesce(F.col("priority"), F.lit(0))
    match protocol:
        case "bullmq":
            return -priority
        case "pgboss":
            return priority
        case "bridgemq":
            return F.when(priority >= FRONT_FROM, 1).otherwise(0).cast("bigint")
        case _:
            return F.lit(0).cast("bigint")


def run_order(protocol: str) -> list[Column]:
    """Sort keys that put rows of `jobs` with `late` and `level` in the order in which their queue would run them: what
    is ready first, then what is due later by its time."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 an extra

    late, due = F.col("late"), F.when(F.col("late"), F.col("run_at"))
    behind = [F.col("position"), F.col("created_at"), F.col("id")]
    if protocol == "monque":
        return [late, F.col("run_at"), *behind]
    if protocol == "pgboss":
        return [late, due, -F.col("level"), F.col("created_at"), *behind]
    # With both lists there, BullMQ's `paused` is the older one.
    return [late, due, -F.col("level"), F.col("native_state") != "paused", *behind]


@dataclass(frozen=True)
class Priorities:
    """How levels are told in the target. `steps` holds the number of each level where the plain rule has no room."""

    source: str
    target: str
    top: int = 0
    bottom: int = 0
    steps: Mapping[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def between(cls, source: str, target: str, levels: Sequence[int]) -> Priorities:
        """For jobs that have these levels."""
        top, bottom = max([0, *levels]), min([0, *levels])
        if target == "bullmq" and source != "bullmq" and top - bottom > LOWEST_BULLMQ:
            ordered = sorted({0, *levels}, reverse=True)
            return cls(source, target, top, bottom, {one: place for place, one in enumerate(ordered)})
        return cls(source, target, top, bottom)

    def as_note(self) -> dict[str, Any]:
        """For a journal: JSON has texts for keys."""
        steps = {str(level): number for level, number in self.steps.items()}
        return {"source": self.source, "target": self.target, "top": self.top, "bottom": self.bottom, "steps": steps}

    @classmethod
    def from_note(cls, note: Mapping[str, Any]) -> Priorities:
        """What `as_note` said."""
        steps = {int(level): number for level, number in note["steps"].items()}
        return cls(note["source"], note["target"], note["top"], note["bottom"], steps)

    def number(self, level: int, own: int | None) -> int | None:
        """What to ask the target for, for a job of this level, whose own number is `own`. None: nothing."""
        if self.target == "monque" or self.source == "monque":
            return None
        if self.source == self.target:
            return own
        match self.target:
            case "bullmq":
                return self.steps.get(level, self.top - level)
            case "pgboss":
                return level
            case _:
                return FRONT if level > 0 else MIDDLE

    def front(self, level: int, own: int | None) -> bool:
        """Whether the target puts such a job before all others when it arrives: these are copied last one first."""
        number = self.number(level, own)
        return self.target == "bridgemq" and number is not None and number >= FRONT_FROM

    def told(self) -> str:
        """The rule in a sentence."""
        if self.target == "monque":
            return "Monque has no priorities: jobs that are ready keep their order through due times 1 ms apart"
        if self.source == self.target or self.top == self.bottom == 0:
            return "priorities stay as they are" if self.source != "monque" else "there are no priorities"
        match self.target:
            case "bullmq":
                ordinary = self.number(0, None)
                later = f"; what had none has {ordinary} now: give new jobs that number, as 0 runs first"
                return f"the highest becomes 0 and lower ones count up from there{later if ordinary else ''}"
            case "pgboss":
                return (
                    "numbers change their sign: what ran before still does"
                    if self.source == "bullmq"
                    else ("the front class becomes 1, the other 0")
                )
            case _:
                return (
                    "BridgeMQ has two classes: what is above 0 goes to the front class, all else to the other; the "
                    "jobs keep their order, but later ones of one class run behind them"
                )
