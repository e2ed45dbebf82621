"""A queue of this protocol: one job type of a namespace, with its server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jobwire.backends.bridgemq.keys import Keys
from jobwire.backends.redisio.connect import RedisStore
from jobwire.backends.redisio.scripts import Argument, Scripts


@dataclass(frozen=True, slots=True)
class JobType:
    name: str
    keys: Keys
    store: RedisStore
    scripts: Scripts

    async def run(self, script: str, *args: Argument) -> Any:
        """Runs a script of this protocol. Its only key is the namespace, from which it builds the others."""
        return await self.scripts.run(script, [self.keys.base], args)

    async def now_ms(self) -> int:
        """Returns the server's time."""
        return int(await self.run("time"))
