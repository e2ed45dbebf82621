"""The connections and the listener that all backends of one event loop share when they have the same address.

So a process with many workers, each made from the same URL, has one pool and one listening connection. Each event loop
has its own, since a connection belongs to the loop that made it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from jobwire.backends.pgboss.connection.pool import Pool
from jobwire.backends.pgboss.work.wakeup import Wakeup

_Key = tuple[str, str, str]
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, Shared]] = WeakKeyDictionary()


@dataclass(slots=True)
class Shared:
    """The pool and the listener of one address, and how many backends use them."""

    pool: Pool
    wakeup: Wakeup
    users: int = 0


def join(url: str, where: str, schema: str) -> Shared:
    """Returns the pool and the listener of an address. The first backend that asks makes them."""
    known = _shared.setdefault(asyncio.get_running_loop(), {})
    key = (url, where, schema)
    if key not in known:
        known[key] = Shared(Pool(url, where), Wakeup(url, where, schema))
    known[key].users += 1
    return known[key]


async def leave(shared: Shared) -> None:
    """Counts one backend less, and closes pool and listener when none is left."""
    shared.users -= 1
    if shared.users:
        return
    known = _shared.get(asyncio.get_running_loop(), {})
    for key, one in list(known.items()):
        if one is shared:
            del known[key]
    shared.pool.close()
    await shared.wakeup.close()
