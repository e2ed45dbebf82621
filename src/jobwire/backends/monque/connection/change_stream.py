"""A change stream with a deadline for every answer, which is closed without waiting.

The server answers at least once a second, even if nothing has changed. Without the deadline, a connection that broke
unnoticed would keep its reader waiting, first for the answer and then for the driver's own attempts to resume.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

from pymongo.asynchronous.change_stream import AsyncChangeStream

from jobwire.backends.monque.connection.store import CALL, Document, Store

AWAIT_MS = 1000
_ANSWER_WITHIN = 6.0
UNREADABLE_TOKEN = range(50_809, 50_832)
"""Codes with which a server refuses a token that it made itself: MongoDB 6.0 does so with tokens of jobs whose `_id` is
a fraction."""

Change = Mapping[str, Any]


class Stream:
    """An open change stream. `open_stream` makes it."""

    def __init__(self, store: Store, stream: AsyncChangeStream[Document]) -> None:
        self._store = store
        self._stream = stream
        self._asked: asyncio.Task[Document | None] | None = None

    @property
    def token(self) -> Mapping[str, Any] | None:
        """The token from which another stream can continue."""
        return self._stream.resume_token

    async def next(self) -> Change | None:
        """Returns the next change, or None if there was none for a second."""
        self._asked = self._store.send(self._stream.try_next())
        return await self._store.answer(self._asked, _ANSWER_WITHIN)

    def leave(self) -> None:
        """Closes the stream without waiting for it."""
        # A read that is cancelled closes the stream itself.
        if self._asked is not None and not self._asked.done():
            self._asked.cancel()
        else:
            self._store.send(self._close())

    async def _close(self) -> None:
        async with self._store.reaching(_ANSWER_WITHIN):
            await self._stream.close()


@asynccontextmanager
async def open_stream(
    store: Store, opening: Coroutine[Any, Any, AsyncChangeStream[Document]]
) -> AsyncGenerator[Stream]:
    """Yields the change stream that `opening` opens, and closes it afterwards."""
    stream = Stream(store, await store.answer(store.send(opening), CALL))
    try:
        yield stream
    finally:
        stream.leave()
