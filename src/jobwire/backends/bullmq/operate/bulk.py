"""Counts and changes over all jobs of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobwire.backends.bullmq.connection import Server
from jobwire.model import State

_PRIORITY_STEP = 2**32


class BullBulk:
    """Implements Bulk."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def retry_all(self, queue: str, state: State, before: float, limit: int) -> int:
        return await self._server.run("move_all", queue, [state.value, round(before * 1000), limit])

    async def promote_all(self, queue: str, limit: int) -> int:
        return await self._server.run("move_all", queue, [State.DELAYED.value, "+inf", limit])

    async def now(self) -> float:
        return await self._server.store.clock.now_ms() / 1000

    async def counts_by_priority(self, queue: str, priorities: Sequence[int]) -> Mapping[int, int]:
        """Counts jobs without a priority in the lists, and the others by score, which begins with the priority."""
        keys = self._server.keys(queue)
        found: list[int] = await self._server.store.calls(
            [
                ("LLEN", keys.wait),
                ("LLEN", keys.paused),
                *(
                    ("ZCOUNT", keys.prioritized, priority * _PRIORITY_STEP, (priority + 1) * _PRIORITY_STEP - 1)
                    for priority in priorities
                ),
            ]
        )
        counts = dict(zip(priorities, found[2:], strict=True))
        if 0 in counts:
            counts[0] = found[0] + found[1]
        return counts
