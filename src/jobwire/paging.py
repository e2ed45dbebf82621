"""All jobs of a state, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from jobwire.checks import whole
from jobwire.model import Page, State


class Lister(Protocol):
    """The part of a queue that lists its jobs."""

    async def jobs(
        self,
        state: State | str = State.WAITING,
        *,
        limit: int = 100,
        cursor: str | None = None,
        skip: int = 0,
        reverse: bool = False,
    ) -> Page: ...


async def job_pages(
    queue: Lister, state: State | str = State.WAITING, *, reverse: bool = False, page_size: int = 500
) -> AsyncIterator[Page]:
    """Yields pages until there are no more.

    Each page is read before the one that precedes it is yielded. So the job that a cursor names has not been shown yet
    when the cursor is used, and a caller that removes every job it is shown does not move the position of the next
    page. Without that, a store could read its list from the start again.
    """
    size = whole("page_size", page_size, minimum=1)
    page = await queue.jobs(state, limit=size, reverse=reverse)
    while page.cursor is not None:
        following = await queue.jobs(state, limit=size, cursor=page.cursor, reverse=reverse)
        yield page
        page = following
    yield page
