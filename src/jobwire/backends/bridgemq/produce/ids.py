"""Ids for new jobs: UUIDs of version 7, which sort by the time of their creation.

The delayed set orders jobs that are due at the same time by their ids. With these ids, that is the order in which they
were added.
"""

from __future__ import annotations

import secrets
import threading
import time

_COUNTER_BITS, _RANDOM_BITS = 34, 40
_lock = threading.Lock()
_last = (0, 0)


def new_id() -> str:
    """Returns a UUID greater than all that this process made before."""
    global _last  # noqa: PLW0603 one sequence for the process
    with _lock:
        moment, counter = _last
        now = time.time_ns() // 1_000_000
        moment, counter = (now, secrets.randbits(_COUNTER_BITS - 2)) if now > moment else (moment, counter + 1)
        _last = (moment, counter)
    tail = (counter << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)) & ((1 << 74) - 1)
    value = moment << 80 | 7 << 76 | (tail >> 62) << 64 | 2 << 62 | tail & ((1 << 62) - 1)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
