"""The names of the queues of a store, found a little at a time.

Some stores have a list of their queues. In others all keys must be searched, which takes a second per million. So a
look goes on with the search where the one before stopped, and a new queue is found when the search comes to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

Search = Callable[[str | None], Awaitable[tuple[Sequence[str], str | None]]]
"""Returns some names, and the cursor to go on with."""

FIRST_STEPS, STEPS = 200, 20
"""Steps of the search in one look: until all queues have been found once, and from then on."""


class QueueNames:
    """The queues that are known."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._found: set[str] = set()
        self._cursor: str | None = None
        self.complete = False
        """True if the whole store has been searched once."""

    async def go_on(self, search: Search) -> Sequence[str]:
        """Makes some steps of the search. Returns the names that are known then, sorted."""
        for _ in range(STEPS if self.complete else FIRST_STEPS):
            names, self._cursor = await search(self._cursor)
            self._found.update(names)
            if self._cursor is None:
                self._known, self._found, self.complete = self._found, set(), True
                return sorted(self._known)
        return sorted(self._known | self._found)
