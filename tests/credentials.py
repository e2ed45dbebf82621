"""What a store makes of a password that is not valid any more."""

from __future__ import annotations

from jobwire import Queue
from jobwire.errors import StoreRefused, StoreUnavailable


async def is_refused(queue: Queue) -> bool:
    """True once the server refuses the password, and not while the connection is only lost."""
    try:
        await queue.counts()
    except StoreRefused:
        return True
    except StoreUnavailable:
        return False
    return False
