"""The rules of a protocol, for use without its driver and without a server.

Each backend has a module `rules` with its capabilities and the checks that a job must pass before it is written. The
backend itself uses them, and so does the memory backend when it stands in for another protocol.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from jobwire.boundary import Capabilities, ConsumerSettings, PreparedJob
from jobwire.options import NewJob

Rank = Callable[[int], tuple[int, bool]]
"""Returns the rank of a priority, the lowest of which runs first, and True if the newest job of a rank runs first."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The checks of jobs and workers of one protocol, and the order in which its jobs run."""

    capabilities: Capabilities
    check: Callable[[str, NewJob], object]
    """Raises InvalidOption for a job that a queue of this name does not take."""
    check_encoded: Callable[[PreparedJob], None]
    """Raises InvalidOption for data that the protocol can't hold, which is known only when the job is encoded."""
    check_worker: Callable[[ConsumerSettings], None]
    """Raises InvalidOption or NotSupported for what this protocol's workers can't do. Does not check native options."""
    rank: Rank
    """The order of waiting jobs."""


def rules_of(protocol: str) -> Rules:
    """Returns the rules of a protocol, given by its name in URLs. Imports them by name, since no backend imports
    another."""
    rules: Rules = importlib.import_module(f"jobwire.backends.{protocol}.rules").RULES
    return rules
