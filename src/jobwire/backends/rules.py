"""What a protocol allows, known without its driver and without a server.

Each backend has a module `rules` with its capabilities and the checks that a job must pass before it is written. The
backend itself goes by them, and so does a store that stands in for it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from jobwire.boundary import Capabilities, ConsumerSettings, PreparedJob
from jobwire.options import NewJob

Rank = Callable[[int], tuple[int, bool]]
"""From a job's priority to its rank, the lowest of which runs first, and whether the newest of a rank does."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What is asked of a job before a protocol takes it, and the order in which it then runs."""

    capabilities: Capabilities
    check: Callable[[str, NewJob], object]
    """Raises InvalidOption for a job that a queue of this name does not take."""
    check_encoded: Callable[[PreparedJob], None]
    """Raises InvalidOption for what is found out only when the job is written."""
    check_worker: Callable[[ConsumerSettings], None]
    """Raises InvalidOption or NotSupported for what this protocol's workers can't do. Native options are not looked
    at."""
    rank: Rank
    """The order of waiting jobs."""


def rules_of(protocol: str) -> Rules:
    """The rules of a protocol, by the name that it has in URLs. Looked up by name, since no backend imports another."""
    rules: Rules = importlib.import_module(f"jobwire.backends.{protocol}.rules").RULES
    return rules
