"""Expresses the priorities of a queue in the protocol that it is moved to.

Jobs are compared by level (see stores/dialect.py). A store that orders by arrival gets the jobs in their order, so that
jobs of one level keep theirs as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobwire.pipeline.stores.dialect import Levels, dialect_of


@dataclass(frozen=True)
class Priorities:
    """The rule by which levels of the source's jobs become priorities of the target. `source` and `target` are
    protocols."""

    source: str
    target: str
    levels: Levels

    @classmethod
    def between(cls, source: str, target: str, levels: Sequence[int]) -> Priorities:
        """Returns the rule for jobs that have these levels."""
        found = Levels(max([0, *levels]), min([0, *levels]))
        if source != target and dialect_of(target).crowded(found):
            ordered = sorted({0, *levels}, reverse=True)
            found = replace(found, steps={level: number for number, level in enumerate(ordered)})
        return cls(source, target, found)

    def as_note(self) -> dict[str, Any]:
        """Returns the rule as JSON for a journal, in which all keys are texts."""
        steps = {str(level): number for level, number in self.levels.steps.items()}
        top, bottom = self.levels.top, self.levels.bottom
        return {"source": self.source, "target": self.target, "top": top, "bottom": bottom, "steps": steps}

    @classmethod
    def from_note(cls, note: Mapping[str, Any]) -> Priorities:
        """Returns the rule that `as_note` was called on."""
        steps = {int(level): number for level, number in note["steps"].items()}
        return cls(note["source"], note["target"], Levels(note["top"], note["bottom"], steps))

    def number(self, level: int, own: int | None) -> int | None:
        """Returns the target's priority for a job of this level whose priority in the source is `own`; None: none is
        asked for."""
        source, target = dialect_of(self.source), dialect_of(self.target)
        if source.rules.capabilities.priority is None:
            return None
        return own if source is target else target.priority(level, self.levels)

    def described(self) -> str:
        """Returns the rule in a sentence."""
        source, target = dialect_of(self.source), dialect_of(self.target)
        if target.rules.capabilities.priority is None:
            return target.describe_priorities(source, self.levels)
        if source.rules.capabilities.priority is None:
            return "there are no priorities"
        if source is target or self.levels.top == self.levels.bottom == 0:
            return "priorities stay as they are"
        return target.describe_priorities(source, self.levels)
