"""Updates jobwire's index after changes that peers made to the spec's own keys, in steps of some milliseconds each."""

from __future__ import annotations

from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.redisio.scripts import Scripts

READERS_STEPS = 200
"""Most steps that a reader makes before it reads: enough for a hundred thousand jobs that are not in the index."""


class Reindex:
    """One pass over the spec's containers. Skips those whose size is that of the index."""

    def __init__(self, scripts: Scripts, keys: Keys) -> None:
        self._scripts = scripts
        self._keys = keys
        self._positions = (0, 0, 0)

    async def run(self, steps: int) -> None:
        """Makes at most `steps` steps. The next call continues where this one stopped."""
        for _ in range(steps):
            more, *positions = await self._scripts.run("reindex", [self._keys.base], self._positions)
            self._positions = (positions[0], positions[1], positions[2])
            if not more:
                return
