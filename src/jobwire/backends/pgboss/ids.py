"""Ids of new jobs: UUIDs of version 7, each greater than the one before.

pg-boss takes any UUID. These keep the primary key's index growing at one end only, and tell jobs of one moment apart in
the order in which they were added.
"""

from __future__ import annotations

import secrets
import threading
import time
import uuid

_RANDOM_BITS = 74


class _Clock:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._millisecond = 0
        self._tail = 0

    def take(self, count: int) -> tuple[int, int]:
        """A millisecond and the first of `count` numbers in it that nobody else gets."""
        with self._lock:
            now = time.time_ns() // 1_000_000
            if now > self._millisecond:
                self._millisecond = now
                self._tail = secrets.randbits(_RANDOM_BITS - 1)  # the upper half is left to count in
            first = self._tail
            self._tail += count
            return self._millisecond, first


_clock = _Clock()


def new_ids(count: int) -> list[str]:
    """
    >>> one, two = new_ids(2)
    >>> one < two, one[14]
    (True, '7')
    """
    millisecond, first = _clock.take(count)
    head = f"{millisecond:012x}"
    start = f"{head[:8]}-{head[8:]}-7"
    ids: list[str] = []
    for tail in range(first, first + count):
        low = f"{tail & 0x3FFFFFFFFFFFFFFF | 0x8000000000000000:016x}"
        ids.append(f"{start}{tail >> 62 & 0xFFF:03x}-{low[:4]}-{low[4:]}")
    return ids


def is_id(value: str) -> bool:
    """Whether PostgreSQL would take the text for a UUID in its usual form."""
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False
