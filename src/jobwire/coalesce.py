"""Group commit for callers: items that arrive during a call are collected and sent together when it returns.

Under light load an item has the latency of one call, under heavy load there is the throughput of large batches. No
timer is involved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from jobwire.errors import Closed, InvalidOption

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Coalescer(Generic[Item, Answer]):
    """Turns many single calls into few batches. Items are sent in the order of their arrival.

    The first item is sent alone, unless `together`: then the items of the same turn of the event loop go with it, which
    is worth a task if the call is dear. With several `calls`, as many may be under way at once.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        limit: int,
        *,
        together: bool = False,
        calls: int = 1,
    ) -> None:
        self._send = send
        self._limit = limit
        self._together = together
        self._calls = calls
        self._pending: list[tuple[Item, asyncio.Future[Answer]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = False
        """True from the creation of a task to its first step, in which it takes what is pending."""
        self._busy = 0
        self._closed = False
        self._idle = asyncio.Event()

    async def put(self, item: Item) -> Answer:
        """Sends the item, together with others that are waiting, and returns its answer."""
        if self._closed:
            raise Closed
        if not (self._busy or self._together):
            return await self._alone(item)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._pending.append((item, future))
        if self._busy < self._calls:
            self._begin()
        return await future

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        """Refuses new items, and returns when all earlier ones have their answer."""
        self._closed = True
        if self._busy:
            self._idle.clear()
            await self._idle.wait()

    async def _alone(self, item: Item) -> Answer:
        """Sends an item at once if no call is in progress. Items that arrive meanwhile follow together."""
        self._busy += 1
        try:
            [answer] = await self._send([item])
            return answer
        finally:
            if self._pending:
                self._begin()
            self._rest()

    def _begin(self) -> None:
        if not self._starting:
            self._starting = True
            self._busy += 1
            task = asyncio.create_task(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _drain(self) -> None:
        self._starting = False
        try:
            while self._pending:
                batch, self._pending = self._pending[: self._limit], self._pending[self._limit :]
                if self._pending and self._busy < self._calls:
                    self._begin()
                # Leave out items whose caller was cancelled before they were sent.
                batch = [entry for entry in batch if not entry[1].cancelled()]
                if batch:
                    await self._send_batch(batch)
        finally:
            self._rest()

    def _rest(self) -> None:
        self._busy -= 1
        if not self._busy:
            self._idle.set()

    async def _send_batch(self, batch: list[tuple[Item, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._send([item for item, _ in batch])
        except InvalidOption as error:
            # One of them was refused before any was sent. Each is sent alone, so that only that one fails.
            if len(batch) == 1:
                _fail(batch, error)
            else:
                for entry in batch:
                    await self._send_batch([entry])
        except BaseException as error:
            _fail(batch, error)
            if not isinstance(error, Exception):
                raise
        else:
            for (_, future), answer in zip(batch, answers, strict=True):
                if not future.done():
                    future.set_result(answer)


def _fail(batch: Sequence[tuple[Item, asyncio.Future[Answer]]], error: BaseException) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
