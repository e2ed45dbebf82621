"""The rules of privacy: what becomes of the values at a path, in the jobs of a queue.

    [pipeline.privacy.emails]
    "$.to" = "hash"
    "$.card" = "drop"
    "result.token" = "mask"

    [pipeline.privacy."*"]          # every queue; * stands for any text
    "$..password" = "drop"

* Of two rules on the way to a value, the deeper one counts: `"$" = "drop"` with `"$.tenant" = "keep"` keeps the tenant
  and nothing else.
* Of two rules for the same place, the one whose queue is given by its name counts, then the one whose path has no
  wildcard, then the stricter: drop, mask, hash, keep.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, cast

import orjson

from jobwire import spelling
from jobwire.errors import InvalidOption
from jobwire.pipeline.privacy.path import Path, parse_path

KEY_VARIABLE = "JOBWIRE_PRIVACY_KEY"
ACTIONS = ("keep", "hash", "mask", "drop")
"""From the least strict to the strictest."""
_SHORTEST_KEY = 16


@dataclass(frozen=True)
class Rule:
    """An action for the values at a path in the jobs of a queue."""

    queue: str
    """A name, or a pattern with `*`."""
    path: Path
    action: str

    @property
    def of_pattern(self) -> bool:
        return "*" in self.queue

    @property
    def rank(self) -> tuple[bool, bool, int]:
        """Returns the rank among rules for the same place: the highest counts."""
        return not self.of_pattern, self.path.exact, ACTIONS.index(self.action)

    def covers(self, queue: str) -> bool:
        if not self.of_pattern:
            return queue == self.queue
        # Brackets and question marks are parts of names here, not patterns.
        return fnmatchcase(queue, self.queue.replace("[", "[[]").replace("?", "[?]"))

    def __str__(self) -> str:
        return f"{self.queue} {self.path.text} = {self.action}"


@dataclass(frozen=True)
class QueueRules:
    """The rules of one queue, of which at least one does not keep what it covers."""

    rules: Sequence[Rule]
    key: bytes = field(default=b"", repr=False)

    @property
    def described(self) -> list[str]:
        """Returns the rules as texts that the lake keeps."""
        return sorted(f"{rule.path.text} = {rule.action}" for rule in self.rules)

    def digest(self, value: Any) -> str:
        """Returns the keyed hash of a JSON value. Equal values have equal hashes, whatever the order of their members.
        The key's own digest comes first: hashes of two keys differ visibly."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        return f"hash:{key_id(self.key)}:{hmac.new(self.key, text, hashlib.sha256).hexdigest()[:32]}"


@dataclass(frozen=True)
class Privacy:
    """All rules of a configuration, and the key of its hashes."""

    rules: tuple[Rule, ...] = ()
    key: bytes = field(default=b"", repr=False)

    def of_queue(self, queue: str) -> QueueRules | None:
        """Returns the rules of a queue, or None if all of its values are kept."""
        found = [rule for rule in self.rules if rule.covers(queue)]
        return QueueRules(found, self.key) if any(rule.action != "keep" for rule in found) else None

    @property
    def options(self) -> dict[str, str]:
        """Returns the options of the data source. Spark does not show the value of an option named so."""
        if all(rule.action == "keep" for rule in self.rules):
            return {}
        rules = [[rule.queue, rule.path.text, rule.action] for rule in self.rules]
        return {"privacy_secret": orjson.dumps({"rules": rules, "key": self.key.hex()}).decode()}


EVERYTHING_KEPT = Privacy()


def from_option(text: str) -> Privacy:
    """Returns what `Privacy.options` wrote."""
    try:
        found: Any = orjson.loads(text)
        rules = tuple(Rule(queue, parse_path(path, "path"), action) for queue, path, action in found["rules"])
        return Privacy(rules, bytes.fromhex(found["key"]))
    except (ValueError, KeyError, TypeError):
        raise InvalidOption("privacy_secret", "(hidden)", "must come from Privacy.options") from None


def parse_rules(section: Mapping[str, Any], key: str | None, where: str = "privacy") -> Privacy:
    """Returns the rules of a table of queues, each a table of paths and actions. `key` is the one of the hashes."""
    rules: list[Rule] = []
    for queue, paths in section.items():
        if not queue:
            raise InvalidOption(where, queue, 'must have a queue\'s name, or "*" for all')
        if not isinstance(paths, Mapping) or not paths:
            raise InvalidOption(f"{where}.{queue}", paths, 'must be a table of paths, such as "$.email" = "hash"')
        for text, action in cast("Mapping[str, Any]", paths).items():
            name = f"{where}.{queue}"
            if action not in ACTIONS:
                near = spelling.closest(str(action), ACTIONS)
                hint = f"; did you mean {near}?" if near else ""
                raise InvalidOption(f"{name}: {text}", action, f"must be keep, hash, mask or drop{hint}")
            rules.append(Rule(queue, parse_path(text, name), action))
    if hashing := next((rule for rule in rules if rule.action == "hash"), None):
        if not key:
            rule = f"needs the environment variable {KEY_VARIABLE}: hashes without a key can be guessed"
            raise InvalidOption(f"{where}.{hashing.queue}: {hashing.path.text}", "hash", rule)
        if len(key.encode()) < _SHORTEST_KEY:
            raise InvalidOption(KEY_VARIABLE, f"{len(key)} characters", f"must have at least {_SHORTEST_KEY}")
    return Privacy(tuple(rules), (key or "").encode())


def key_id(key: bytes) -> str:
    """Returns a few characters by which a key is recognised and that don't give it away."""
    return hmac.new(key, b"jobwire privacy key", hashlib.sha256).hexdigest()[:6]
