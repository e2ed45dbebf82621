"""Stops waiting for tasks of the user's code that don't end. Python can't stop a task that ignores its cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

_LAST_STEPS = 1.0
"""Seconds that a task may take to end once it is cancelled."""


def forget(task: asyncio.Task[Any]) -> None:
    """Removes the task from the event loop's list, so that `asyncio.run` does not wait for it at its end."""
    asyncio.tasks._unregister_task(task)  # pyright: ignore[reportPrivateUsage] documented for extensions of asyncio
    setattr(task, "_log_destroy_pending", False)  # noqa: B010 - unknown to type checkers; Python's gather sets it too


async def end_within(tasks: Collection[asyncio.Task[Any]], seconds: float) -> set[asyncio.Task[Any]]:
    """Waits for the tasks, cancels those that take longer, and forgets those that ignore it. Returns the ones that did
    not end by themselves."""
    _, late = await asyncio.wait(tasks, timeout=seconds)
    for task in late:
        task.cancel()
    if late:
        _, stubborn = await asyncio.wait(late, timeout=_LAST_STEPS)
        for task in stubborn:
            forget(task)
    return late
