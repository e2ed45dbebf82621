"""Waiting for a condition instead of sleeping for a time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def eventually(condition: Callable[[], Any], within: float = 20.0) -> Any:
    """The condition's value (awaited if need be) once it is true; TimeoutError if that takes too long."""
    async with asyncio.timeout(within):
        while True:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(0.005)
