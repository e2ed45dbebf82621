"""Bringing our index in line with what peers did to the spec's own keys, in steps of some milliseconds each."""

from __future__ import annotations

from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.redisio.scripts import Scripts

READERS_STEPS = 200
"""What a reader does at most before it looks: enough for a hundred thousand jobs that nobody has noticed."""


class Healing:
    """One walk through the lists, as far as the sizes say that there is something to find."""

    def __init__(self, scripts: Scripts, keys: Keys) -> None:
        self._scripts = scripts
        self._keys = keys
        self._reached = (0, 0, 0)

    async def go_on(self, steps: int) -> None:
        """At most so many steps more; the next call goes on where this one stopped."""
        for _ in range(steps):
            more, *reached = await self._scripts.run("reindex", [self._keys.base], self._reached)
            self._reached = (reached[0], reached[1], reached[2])
            if not more:
                return
