"""Makes ids of new jobs: UUIDs of version 7, each greater than the one before it in this process.

pg-boss and BridgeMQ take any UUID. These keep the index of pg-boss's primary key growing at one end only, and jobs of
the same millisecond stay in the order in which they were added.

An id is the millisecond in which it was made (48 bits) and a tail (74 bits). The tail begins at a random number in each
millisecond and counts up from there, so a batch of ids costs one look at the clock and one random number.
"""

from __future__ import annotations

import secrets
import threading
import time

from jobwire import forking

_TAIL_BITS = 74
_END_BITS = 48
_END = (1 << _END_BITS) - 1


class _Tails:
    """Hands out tails, each to one caller only."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forgets the last id, so that the next one begins at a random tail."""
        self._lock = threading.Lock()
        self._millisecond = 0
        self._tail = 0

    def take(self, count: int) -> tuple[int, int]:
        """Returns a millisecond and the first of `count` tails in it. No other call gets the same ones."""
        with self._lock:
            now = time.time_ns() // 1_000_000
            if now > self._millisecond:
                self._millisecond = now
                self._tail = secrets.randbits(_TAIL_BITS - 1)  # the upper half is left to count in
            first = self._tail
            self._tail += count
            return self._millisecond, first


_tails = _Tails()
# Without this, a forked child would count on from its parent's tail, and both would make the same ids.
forking.follow(_tails, _Tails.reset)


def new_id() -> str:
    """Returns one new id."""
    millisecond, tail = _tails.take(1)
    return f"{_head(millisecond, tail)}{tail & _END:012x}"


def new_ids(count: int) -> list[str]:
    """Returns new ids in ascending order.

    >>> one, two = new_ids(2)
    >>> one < two, one[14]
    (True, '7')
    """
    millisecond, first = _tails.take(count)
    last = first + count - 1
    if first >> _END_BITS != last >> _END_BITS:
        return [_head(millisecond, tail) + f"{tail & _END:012x}" for tail in range(first, last + 1)]
    head, end = _head(millisecond, first), first & _END  # nearly always: only the last group of digits differs
    return [f"{head}{number:012x}" for number in range(end, end + count)]


def _head(millisecond: int, tail: int) -> str:
    """Returns all but the last twelve digits of an id."""
    digits, middle = f"{millisecond:012x}", tail >> _END_BITS
    return f"{digits[:8]}-{digits[8:]}-7{middle >> 14:03x}-{middle & 0x3FFF | 0x8000:04x}-"
