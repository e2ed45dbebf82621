"""Rules for jobs of the memory store: its own, or those of a protocol that it imitates."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from jobwire.backends.rules import Rules
from jobwire.boundary import ALL_SCHEDULES, ALL_UNIQUE, Capabilities, Feature
from jobwire.errors import InvalidOption, NotSupported
from jobwire.options import NewJob
from jobwire.protocols import PROTOCOLS

_HAS = frozenset(
    {
        Feature.JOB_NAMES,
        Feature.PRIORITIES,
        Feature.LIFO,
        Feature.ATTEMPTS,
        Feature.BACKOFF_FIXED,
        Feature.BACKOFF_LINEAR,
        Feature.BACKOFF_EXPONENTIAL,
        Feature.BACKOFF_CUSTOM,
        Feature.TIMEOUTS,
        Feature.KEEP,
        *ALL_UNIQUE,
        Feature.FLOWS,
        Feature.DEPENDENCIES,
        Feature.PROGRESS,
        Feature.LOGS,
        Feature.RESULTS,
        Feature.EVENTS,
        Feature.PAUSE,
        Feature.CANCEL,
        Feature.BULK,
        Feature.EDITS,
        Feature.EVENT_CONTROL,
        *ALL_SCHEDULES,
        Feature.RATE_LIMIT,
        Feature.THROTTLE,
        Feature.LIMITS,
        Feature.WORKERS,
        Feature.QUEUES,
    }
)
_NEAREST = {
    Feature.ROUTING: "use a queue per target",
    Feature.DIAGNOSIS: "its jobs are in this process, so there is no server to look at",
}
CAPABILITIES = Capabilities(
    protocol=PROTOCOLS["memory"].name,
    features=_HAS,
    priority="low_first",
    default_attempts=1,
    nearest=_NEAREST,
)
MAX_PRIORITY = 2**21 - 1


def _check(queue: str, new: NewJob) -> None:
    if new.id is not None and new.id.isdecimal():
        raise InvalidOption("id", new.id, "must not be a whole number: the store gives those itself")
    if new.priority is not None and not 0 <= new.priority <= MAX_PRIORITY:
        raise InvalidOption("priority", new.priority, f"must be from 0 (first) to {MAX_PRIORITY} (last)")
    for name in new.extra:
        raise InvalidOption(f"extra.{name}", new.extra[name], "is not an option of the memory store")


def by_number(priority: int) -> tuple[int, bool]:
    return priority, False


OWN_RULES = Rules(CAPABILITIES, _check, lambda job: None, lambda settings: None, rank=by_number)


@dataclass(frozen=True, slots=True)
class Imitated(Capabilities):
    """A protocol's capabilities, without those that the memory store lacks."""

    missing: frozenset[Feature] = frozenset()

    def refusal(self, feature: Feature) -> NotSupported:
        if feature in self.missing:
            return NotSupported("memory", feature.value, _elsewhere(self))
        return Capabilities.refusal(self, feature)


def imitated(rules: Rules) -> Rules:
    """Returns the rules of a protocol, as far as the memory store can keep them."""
    can = rules.capabilities

    def check(queue: str, job: NewJob) -> None:
        rules.check(queue, job)
        for option in job.extra:
            raise NotSupported("memory", f"extra.{option}", _elsewhere(can))

    values: dict[str, Any] = {each.name: getattr(can, each.name) for each in fields(can)}
    values["features"] = can.features & CAPABILITIES.features
    return replace(rules, capabilities=Imitated(**values, missing=can.features - CAPABILITIES.features), check=check)


def _elsewhere(can: Capabilities) -> str:
    return f"{can.protocol} has it: test it with an embedded server"
