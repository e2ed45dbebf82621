"""The server's time. The clocks of clients differ, so moments that are stored or compared are the server's.

Scripts ask the server themselves. The end of a run is written before a script sees it, so it is reckoned from the time
that came with the last answer.
"""

from __future__ import annotations

import time


class ServerClock:
    """Goes on from the last time that was heard. A local clock that is wrong or jumps makes no difference."""

    def __init__(self) -> None:
        self._ahead = time.time() * 1000 - _monotonic_ms()

    def hear(self, server_ms: int) -> None:
        self._ahead = server_ms - _monotonic_ms()

    def now_ms(self) -> int:
        return int(_monotonic_ms() + self._ahead)


def _monotonic_ms() -> float:
    return time.monotonic() * 1000
