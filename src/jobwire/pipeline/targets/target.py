"""The targets of a queue.

[pipeline.targets.emails]
wait_p95 = "30s"           # 95 of 100 runs start within 30 seconds of being ready
failure_rate = "1%"        # at most one of 100 jobs that end has failed for good
window = "28d"             # over which the budget is counted

[pipeline.targets."*"]     # every queue without targets of its own; * stands for any text
failure_rate = "5%"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Any, cast

from jobwire import spelling
from jobwire.durations import seconds_in
from jobwire.errors import InvalidOption

_KEYS = ("wait_p95", "failure_rate", "window")
_WINDOW = timedelta(days=28)
_SHORTEST_WINDOW = timedelta(days=1)
WAITING_LONGER = 0.05
"""The share of runs that may wait for longer than `wait_p95`."""


@dataclass(frozen=True)
class Target:
    """The targets of the queues that a name or a pattern stands for."""

    queue: str
    wait_p95: timedelta | None = None
    failure_rate: float | None = None
    window: timedelta = _WINDOW

    @property
    def of_pattern(self) -> bool:
        return "*" in self.queue

    def covers(self, queue: str) -> bool:
        if not self.of_pattern:
            return queue == self.queue
        # Brackets and question marks are parts of names here, not patterns.
        return fnmatchcase(queue, self.queue.replace("[", "[[]").replace("?", "[?]"))


@dataclass(frozen=True)
class Targets:
    """All targets of a configuration."""

    targets: tuple[Target, ...] = ()

    def of_queue(self, queue: str) -> Target | None:
        """Returns the target of a queue: the one of its name, else the longest pattern that it fits."""
        found = [target for target in self.targets if target.covers(queue)]
        return max(found, key=lambda one: (not one.of_pattern, len(one.queue)), default=None)


NO_TARGETS = Targets()


def parse_targets(section: Mapping[str, Any], where: str = "targets") -> Targets:
    """Returns the targets of a table of queues. Raises InvalidOption with the place, the value and the rule."""
    return Targets(tuple(_target(queue, given, f"{where}.{queue}") for queue, given in section.items()))


def _target(queue: str, given: Any, where: str) -> Target:
    if not isinstance(given, Mapping) or not queue:
        raise InvalidOption(where, given, 'must be a table such as [pipeline.targets.emails] with wait_p95 = "30s"')
    values = cast("Mapping[str, Any]", given)
    for key in values:
        if key not in _KEYS:
            near = spelling.closest(key, _KEYS)
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidOption(where, key, f"must have {', '.join(_KEYS)} only{hint}")
    if "wait_p95" not in values and "failure_rate" not in values:
        raise InvalidOption(where, dict(values), "must have wait_p95 or failure_rate, or both")
    window = _duration(f"{where}.window", values.get("window", "28d"))
    if window < _SHORTEST_WINDOW:
        raise InvalidOption(f"{where}.window", values["window"], "must be at least a day")
    return Target(
        queue,
        wait_p95=_duration(f"{where}.wait_p95", values["wait_p95"]) if "wait_p95" in values else None,
        failure_rate=_share(f"{where}.failure_rate", values["failure_rate"]) if "failure_rate" in values else None,
        window=window,
    )


def _duration(where: str, value: Any) -> timedelta:
    written = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    seconds = seconds_in(str(value)) if written else None
    if seconds is None or not 0 < seconds < 10 * 366 * 86_400:
        raise InvalidOption(where, value, 'must be a duration such as "30s", "10m" or "28d", or a number of seconds')
    return timedelta(seconds=seconds)


def _share(where: str, value: Any) -> float:
    share: float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        share = float(value)
    elif isinstance(value, str) and value.strip().endswith("%"):
        try:
            share = float(value.strip()[:-1]) / 100
        except ValueError:
            share = None
    if share is None or not 0 < share < 1:
        raise InvalidOption(where, value, 'must be a share above 0 and below 1, such as 0.01 or "1%"')
    return share
