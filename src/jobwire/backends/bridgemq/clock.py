"""The server's time. The clocks of clients differ, so moments that are stored or compared are the server's.

Scripts ask the server themselves. What is written before a script runs, the end of a run in its result, is reckoned
from the time that came with the last answer.
"""

from __future__ import annotations

import time
from typing import Any

from jobwire.backends.redisio.connect import RedisStore


async def server_now(store: RedisStore) -> int:
    """Asks for the time, in ms."""
    seconds, micros = _pair(await store.call("TIME"))
    return seconds * 1000 + micros // 1000


def _pair(reply: Any) -> tuple[int, int]:
    return int(reply[0]), int(reply[1])


class ServerClock:
    """Goes on from the last time that was heard. Local clocks that jump make no difference."""

    def __init__(self) -> None:
        self._ahead = time.time() * 1000 - _monotonic_ms()

    def hear(self, server_ms: int) -> None:
        self._ahead = server_ms - _monotonic_ms()

    def now_ms(self) -> int:
        return int(_monotonic_ms() + self._ahead)


def _monotonic_ms() -> float:
    return time.monotonic() * 1000
