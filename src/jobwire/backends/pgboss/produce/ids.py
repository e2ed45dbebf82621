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
_END_BITS = 48
_END = (1 << _END_BITS) - 1


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
    last = first + count - 1
    if first >> _END_BITS != last >> _END_BITS:
        return [_head(millisecond, tail) + f"{tail & _END:012x}" for tail in range(first, last + 1)]
    head, end = _head(millisecond, first), first & _END  # nearly always: only the last group of digits differs
    return [f"{head}{number:012x}" for number in range(end, end + count)]


def _head(millisecond: int, tail: int) -> str:
    """All but the last twelve digits of an id."""
    moment, middle = f"{millisecond:012x}", tail >> _END_BITS
    return f"{moment[:8]}-{moment[8:]}-7{middle >> 14:03x}-{middle & 0x3FFF | 0x8000:04x}-"


def is_id(value: str) -> bool:
    """Whether PostgreSQL would take the text for a UUID in its usual form."""
    try:
        return str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False
