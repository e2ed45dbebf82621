"""Several changes of one command, which a store makes one after the other.

The store can refuse each of them. Those before it have been made by then, so the command names them beside the error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from jobwire.cli.output import printable, remark
from jobwire.errors import JobwireError

Step = tuple[str, Callable[[], Awaitable[object]]]
"""The name of a change, and the call that makes it."""


async def make_changes(steps: Sequence[Step], what: str) -> list[str]:
    """Makes the changes in order and returns their names. If one is refused, prints what has been changed and what has
    not, and raises its error."""
    done: list[str] = []
    for name, change in steps:
        try:
            await change()
        except (asyncio.CancelledError, JobwireError):
            if done:
                left = [one for one, _ in steps[len(done) :]]
                remark(f"changed {', '.join(done)} of {printable(what)}; not changed: {', '.join(left)}")
            raise
        done.append(name)
    return done
