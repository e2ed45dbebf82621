"""Options that only BridgeMQ has."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jobwire.checks import Seconds, seconds, text, whole
from jobwire.errors import InvalidOption
from jobwire.native.made import native


@native
class BridgeMQWorker:
    """Options of one worker on BridgeMQ. Jobs may require a stack, capabilities and a region of their worker."""

    server_id: str | None = None
    """The worker's id in the registry, which jobs may name as their target. By default the worker's own id."""
    stack: str | None = None
    capabilities: Collection[str] = ()
    region: str | None = None
    max_concurrent: int | None = None
    """A limit on running jobs of the type. If a job has one too, the smaller applies."""
    max_per_minute: int | None = None
    """A limit on starts of jobs of the type. If a job has one too, the smaller applies."""
    remember_attempts: Seconds | None = None
    """Seconds for which failed attempts that another follows are remembered in the job's data, with their times and
    errors, for the pipeline. BridgeMQ keeps the last attempt only."""

    def __post_init__(self) -> None:
        for name in ("server_id", "stack", "region"):
            if getattr(self, name) is not None:
                text(name, getattr(self, name))
        _check_words("capabilities", self.capabilities)
        for name in ("max_concurrent", "max_per_minute"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), minimum=0)
        if self.remember_attempts is not None:
            seconds("remember_attempts", self.remember_attempts, minimum=1)


def _check_words(field: str, value: Any) -> None:
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise InvalidOption(field, value, "must be a list of strings")
    for word in value:  # pyright: ignore[reportUnknownVariableType] callers may be untyped
        text(field, word)
