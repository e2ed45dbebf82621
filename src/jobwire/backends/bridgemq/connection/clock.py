"""The server's time. The clocks of clients differ, so only the server's time is stored or compared.

Scripts read the server's time themselves. The end of a run is encoded before the script runs, so it is computed from
the time in the last reply.
"""

from __future__ import annotations

import time


class ServerClock:
    """Continues from the server's time in the last reply. A local clock that is wrong or jumps has no effect."""

    def __init__(self) -> None:
        self._ahead = time.time() * 1000 - _monotonic_ms()

    def set_server_ms(self, server_ms: int) -> None:
        self._ahead = server_ms - _monotonic_ms()

    def now_ms(self) -> int:
        return int(_monotonic_ms() + self._ahead)


def _monotonic_ms() -> float:
    return time.monotonic() * 1000
