"""The scene of a run: what a fault can reach."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from awaiting import eventually
from faults.fleet import Fleet, Member
from faults.ledger import Kind, Ledger
from faults.proxy import Proxy
from faults.stores import Store

_PROGRESS_WITHIN = 90.0


@dataclass
class Scene:
    """A store, the processes that use it, the network between them, and the dice."""

    store: Store
    fleet: Fleet
    ledger: Ledger
    chance: random.Random
    proxy: Proxy | None
    lease: float
    short: bool
    """True in the ordinary suite: times are seconds, not tens of seconds."""

    @property
    def network(self) -> Proxy:
        assert self.proxy is not None, "the fault has `through_proxy`"
        return self.proxy

    async def progress(self, runs: int) -> None:
        """Waits until so many more handlers have ended."""
        goal = self.ledger.count(Kind.ENDED) + runs

        async def reached() -> bool:
            await asyncio.sleep(0.02)
            return self.ledger.count(Kind.ENDED) >= goal

        await eventually(reached, within=_PROGRESS_WITHIN)

    async def runs_of(self, worker: Member, runs: int) -> None:
        """Waits until the worker has ended so many handlers."""

        def ended() -> bool:
            return sum(1 for entry in self.ledger.of(Kind.ENDED) if entry.by == worker.name) >= runs

        await eventually(ended, within=_PROGRESS_WITHIN)
