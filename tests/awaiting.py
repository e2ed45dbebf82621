"""Waiting for a condition instead of sleeping for a time."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any


async def eventually(look: Callable[[], Any], *, within: float = 20.0) -> Any:
    """The first true value of `look` (awaited if need be), or a failure that shows the last one."""
    deadline = time.monotonic() + within
    while True:
        seen = look()
        if inspect.isawaitable(seen):
            seen = await seen
        if seen:
            return seen
        assert time.monotonic() < deadline, f"not within {within:g} s; last seen: {seen!r}"
        await asyncio.sleep(0.005)
