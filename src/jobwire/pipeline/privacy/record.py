"""The lake's record of the rules that it was written under: a run without them is refused, not written in the clear."""

from __future__ import annotations

from typing import Any

from jobwire.errors import InvalidOption
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.privacy.path import parse_path
from jobwire.pipeline.privacy.rules import EVERYTHING_KEPT, Privacy, QueueRules, Rule

_FILE = "checkpoints/privacy.json"


def has_rules(lake: Lake, queue: str) -> bool:
    """Returns whether the lake was written under rules for this queue."""
    return rules_of(lake, queue, EVERYTHING_KEPT) is not None


def rules_of(lake: Lake, queue: str, privacy: Privacy) -> QueueRules | None:
    """Returns the rules of a queue: those given, and those that the lake was written under and that no given one
    replaces. None if all of its values are kept."""
    given = {(rule.queue, rule.path.text) for rule in privacy.rules}
    before: list[list[str]] = (lake.files.read(_FILE) or {"rules": []})["rules"]
    recorded = [Rule(pattern, parse_path(path, "path"), action) for pattern, path, action in before]
    earlier = tuple(rule for rule in recorded if (rule.queue, rule.path.text) not in given)
    return Privacy((*earlier, *privacy.rules), privacy.key).of_queue(queue)


def record_rules(lake: Lake, privacy: Privacy) -> None:
    """Records the rules before anything is written under them. Raises InvalidOption if one of the earlier rules is
    neither there nor lifted by `keep`: a run from another folder would store what the earlier ones left out."""
    before: list[list[str]] = (lake.files.read(_FILE) or {"rules": []})["rules"]
    now = {(rule.queue, rule.path.text): rule.action for rule in privacy.rules}
    for queue, path, action in before:
        if action != "keep" and (queue, path) not in now:
            raise InvalidOption(
                f"privacy.{queue}",
                None,
                f'must have a rule for {path}: this lake was written with "{path}" = "{action}". Run where the '
                f'settings are, give --settings FILE, or lift the rule with "{path}" = "keep"',
            )
    rules: list[Any] = sorted([queue, path, action] for (queue, path), action in now.items())
    if rules != before:
        lake.files.write(_FILE, {"rules": rules})
