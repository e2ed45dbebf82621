"""What the backends of one event loop share when they speak to the same address: connections and the listener.

A process with many workers, each made from the same URL, so has one pool and one listening connection. Threads have
event loops of their own, and connections belong to the loop that made them.
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
    pool: Pool
    wakeup: Wakeup
    users: int = 0


def join(url: str, where: str, schema: str) -> Shared:
    """The pool and the listener for an address, made for the first who asks."""
    known = _shared.setdefault(asyncio.get_running_loop(), {})
    key = (url, where, schema)
    if key not in known:
        known[key] = Shared(Pool(url, where), Wakeup(url, where, schema))
    known[key].users += 1
    return known[key]


async def leave(shared: Shared) -> None:
    """Close them when the last one leaves."""
    shared.users -= 1
    if shared.users:
        return
    known = _shared.get(asyncio.get_running_loop(), {})
    for key, one in list(known.items()):
        if one is shared:
            del known[key]
    shared.pool.close()
    await shared.wakeup.close()
