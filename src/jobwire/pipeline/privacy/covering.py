"""Applies rules to a JSON value, and gathers the values that must not be found anywhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from jobwire.pipeline.privacy.path import ANY, DEEP
from jobwire.pipeline.privacy.rules import QueueRules, Rule

MASK = "***"
_NAME = re.compile(r"[A-Za-z_$:][\w$-]*")


class _Gone:
    """Stands for a value that was dropped."""


GONE: Final = _Gone()
_Progress = tuple[Rule, int]
"""A rule, and how many of its steps lead to the present value."""


@dataclass
class Covered:
    """The scalars that rules took out of the documents of one job."""

    values: set[str | int | float] = field(default_factory=set[str | int | float])

    def gather(self, value: Any) -> None:
        """Adds every text and number inside a value, and names of members that are data rather than names."""
        if isinstance(value, dict):
            for name, each in cast("dict[str, Any]", value).items():
                if not is_name(name):
                    self.values.add(name)
                self.gather(each)
        elif isinstance(value, list):
            for each in cast("list[Any]", value):
                self.gather(each)
        elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
            self.values.add(value)


def is_name(text: str) -> bool:
    """Returns whether a text looks like the name of a member that a programmer chose."""
    return _NAME.fullmatch(text) is not None


def cover(value: Any, document: str, rules: QueueRules, covered: Covered) -> Any:
    """Returns a document as the lake may have it; GONE if nothing is left of it."""
    begun = [(rule, 0) for rule in rules.rules if rule.path.document == document]
    return _Cover(rules, covered).value(value, begun, None) if begun else value


class _Cover:
    def __init__(self, rules: QueueRules, covered: Covered) -> None:
        self._rules, self._covered = rules, covered

    def value(self, value: Any, under_way: Sequence[_Progress], inherited: str | None) -> Any:
        ended = [rule for rule, steps in under_way if steps == len(rule.path.steps)]
        action = max(ended, key=lambda rule: rule.rank).action if ended else inherited
        deeper = [(rule, steps) for rule, steps in under_way if steps < len(rule.path.steps)]
        if isinstance(value, dict) and deeper:
            return self._object(cast("dict[str, Any]", value), deeper, action)
        if isinstance(value, list) and deeper:
            return self._array(cast("list[Any]", value), deeper, action)
        return self._whole(value, action)

    def _object(self, value: dict[str, Any], under_way: Sequence[_Progress], action: str | None) -> Any:
        made = {name: self.value(each, list(_stepped(under_way, name)), action) for name, each in value.items()}
        left = {name: each for name, each in made.items() if each is not GONE}
        return GONE if action == "drop" and not left else left

    def _array(self, value: list[Any], under_way: Sequence[_Progress], action: str | None) -> Any:
        made = [self.value(each, list(_stepped(under_way, None)), action) for each in value]
        left = [each for each in made if each is not GONE]
        return GONE if action == "drop" and not left else left

    def _whole(self, value: Any, action: str | None) -> Any:
        if action in (None, "keep") or value is None:
            return GONE if action == "drop" else value
        self._covered.gather(value)
        if action == "drop":
            return GONE
        return MASK if action == "mask" else self._rules.digest(value)


def _stepped(under_way: Sequence[_Progress], name: str | None) -> Iterable[_Progress]:
    """Yields the rules that a step to a member leads on; None: to an element of an array."""
    for rule, steps in under_way:
        step = rule.path.steps[steps]
        if step == DEEP:
            yield rule, steps
            if name is not None and rule.path.steps[steps + 1] == name:
                yield rule, steps + 2
        elif step in (ANY, name):
            yield rule, steps + 1
