"""Extends any number of leases, in calls that a server answers within milliseconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from jobwire.boundary import Claim

_TOGETHER = 500


async def extend_in_batches(
    claims: Sequence[Claim], extend: Callable[[Sequence[Claim]], Awaitable[Sequence[Claim]]]
) -> list[Claim]:
    """Calls `extend` with some claims at a time. Returns the claims that are lost."""
    lost: list[Claim] = []
    for start in range(0, len(claims), _TOGETHER):
        lost += await extend(claims[start : start + _TOGETHER])
    return lost
