"""Waiting for a condition instead of sleeping for a time, and times compared with what was measured."""

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


def assert_left(left: float, *, of: float, since: float) -> None:
    """So much is left of a time of `of` seconds that began at `since` (`time.monotonic()`) or later.

    What the calls in between took is measured, so that a slow machine is no failure; a millisecond is rounded away.
    """
    passed = time.monotonic() - since
    assert of - passed - 0.002 <= left <= of + 0.002, f"{left:g} s left of {of:g} s, {passed:g} s later at most"
