"""The state of a demo at one time, for display."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jobwire.cli.demo.demo_campaign import DemoCampaign
from jobwire.cli.demo.demo_store import DemoStore


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that a watcher displays."""

    stores: Sequence[DemoStore]
    elapsed: float
    seconds: float
    phase: str
    campaign: DemoCampaign | None = None


Watch = Callable[[Snapshot], None]
