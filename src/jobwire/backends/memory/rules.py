"""What the memory store can hold and what it refuses: by its own rules, or by those of a protocol it stands in for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from jobwire.backend import Capabilities
from jobwire.backends.rules import Rules
from jobwire.errors import InvalidOption, NotSupported
from jobwire.options import NewJob

CAPABILITIES = Capabilities(
    protocol="memory",
    job_names=True,
    custom_ids=True,
    priority="low_first",
    lifo=True,
    per_job_attempts=True,
    default_attempts=1,
    backoff=frozenset({"fixed", "exponential", "linear", "custom"}),
    job_timeout=True,
    keep=True,
    unique=frozenset({"key", "ttl", "extend", "replace", "owner"}),
    flows=True,
    progress=True,
    logs=True,
    results=True,
    events=True,
    pause=True,
    cancel=True,
    promote=True,
    bulk=True,
    retry_anew=True,
    edits=frozenset({"data", "priority", "delay", "logs"}),
    custom_events=True,
    schedules=frozenset({"every", "cron", "tz", "limit", "window", "immediately"}),
    rate_limit=True,
    throttle=True,
    global_rate=True,
    global_concurrency=True,
    workers=True,
    nearest={"routing": "use a queue per target"},
)
MAX_PRIORITY = 2**21 - 1
NATIVE_ID = "id"
"""The one native option that the store honours: an id by the protocol's own rule."""


def _check(queue: str, new: NewJob) -> None:
    if new.id is not None and new.id.isdecimal():
        raise InvalidOption("id", new.id, "must not be a whole number: the store gives those itself")
    if new.priority is not None and not 0 <= new.priority <= MAX_PRIORITY:
        raise InvalidOption("priority", new.priority, f"must be from 0 (first) to {MAX_PRIORITY} (last)")
    for name in new.extra:
        raise InvalidOption(f"extra.{name}", new.extra[name], "is not an option of the memory store")


def by_number(priority: int) -> tuple[int, bool]:
    return priority, False


OWN_RULES = Rules(CAPABILITIES, _check, lambda job: None, rank=by_number)


@dataclass(frozen=True, slots=True)
class Imitated(Capabilities):
    """A protocol's capabilities, less what the memory store lacks itself."""

    missing: frozenset[str] = frozenset()

    def require(self, feature: str, words: str, *, one: str | None = None) -> None:
        if feature in self.missing:
            raise NotSupported("memory", words, _elsewhere(self))
        Capabilities.require(self, feature, words, one=one)


def imitated(rules: Rules) -> Rules:
    """The rules of a protocol, as far as the memory store can keep them."""
    can = rules.capabilities
    values: dict[str, Any] = {each.name: getattr(can, each.name) for each in fields(can)}
    missing = {name for name, value in values.items() if value is True and getattr(CAPABILITIES, name) is False}

    def check(queue: str, job: NewJob) -> None:
        rules.check(queue, job)
        for option in job.extra:
            if option != NATIVE_ID:
                raise NotSupported("memory", f"extra.{option}", _elsewhere(can))

    values.update(dict.fromkeys(missing, False), missing=frozenset(missing))
    return replace(rules, capabilities=Imitated(**values), check=check)


def _elsewhere(can: Capabilities) -> str:
    return f"{can.protocol} has it: test it with an embedded server"
