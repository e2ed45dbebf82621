"""Compares the clock of the store with that of this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence

from jobwire.boundary import Check, Diagnosis, Finding
from jobwire.boundary.finding_kinds import CLOCK_OFFSET


def clock_check(diagnosis: Diagnosis, most: float) -> Check:
    """Returns the check. The time that the answer took counts in favour of the clocks."""

    async def run() -> Sequence[Finding]:
        asked = time.time()
        server = await diagnosis.now()
        answered = time.time()
        apart = max(asked - server, server - answered, 0.0)
        if apart < most:
            return []
        ahead = "ahead of" if server > answered else "behind"
        return [CLOCK_OFFSET.found(f"the store's clock is {apart:,.1f} s {ahead} this machine's")]

    return Check("clock", run)
