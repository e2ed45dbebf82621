"""The driver's own look at the queue of a fleet: that it exists, and how many jobs it still holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from jobwire import spelling, urls
from jobwire.boundary import Backend
from jobwire.checks import text
from jobwire.errors import InvalidOption, JobwireError, StoreUnavailable
from jobwire.model import State
from jobwire.pipeline.stores.address import name_of, reached, store_name
from jobwire.pipeline.work.order import is_app, make_worker
from jobwire.worker.target import load

_Answer = TypeVar("_Answer")
_LEFT = (State.WAITING, State.ACTIVE)
_TO_COME = (*_LEFT, State.DELAYED)
_TRY_EVERY = 0.5


class Asked:
    """An event loop in a thread: a caller in a notebook has a loop already."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._thread = ThreadPoolExecutor(1, "jobwire-look")

    def __call__(self, question: Coroutine[Any, Any, _Answer]) -> _Answer:
        return self._thread.submit(self._runner.run, question).result()

    def close(self) -> None:
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()


@dataclass(frozen=True)
class QueueLook:
    """An open store, and one of its queues. `url` is the one that tasks use. None: the handler is an app."""

    queue: str
    store: str
    url: str | None
    backend: Backend
    ask: Asked

    @classmethod
    def opened(
        cls, stack: ExitStack, handler: Any, queue: str, url: str | None, options: Mapping[str, Any]
    ) -> QueueLook:
        """Makes a worker as the tasks will, which refuses what is wrong, and opens its store until the stack is closed.
        An embedded server runs as long."""
        found = load(handler) if isinstance(handler, str) else handler
        given = None if is_app(found) else url or urls.default_url()
        if given is None and url is not None:
            raise InvalidOption(
                "url", url, "can't be given: the app has its store, which App(url) or JOBWIRE_URL names"
            )
        if given is None and not isinstance(handler, str):
            raise InvalidOption("handler", handler, "must be the app's name, such as 'shop.tasks:app'")
        where = None if given is None else stack.enter_context(reached(given))
        connection = make_worker(handler, text("queue", queue), where, options).connection
        store = name_of(connection.address) if given is None else store_name(given)
        ask = Asked()
        stack.callback(ask.close)
        look = cls(queue, store, where, connection.backend.twin(), ask)
        stack.callback(lambda: ask(look.backend.close()))
        ask(look.open(options.get("wait_for_store", 0.0)))
        look.require_queue()
        return look

    async def open(self, wait: float) -> None:
        """Opens the store, repeatedly while it does not answer."""
        until = time.monotonic() + wait
        while True:
            try:
                return await self.backend.open()
            except StoreUnavailable:
                if time.monotonic() > until:
                    raise
            await asyncio.sleep(_TRY_EVERY)

    def require_queue(self) -> None:
        """Raises InvalidOption if the store lists its queues and has none of this name."""
        known = self.backend.queue_list
        if known is not None and not self.ask(known.has(self.queue)):
            near = spelling.closest(self.queue, self.ask(known.names()))
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidOption("queue", self.queue, f"must be a queue of {self.store}{hint}")

    def left(self) -> int | None:
        """Returns how many jobs wait or run, or None if the store does not answer."""
        try:
            counts = self.ask(self.backend.counts(self.queue))
        except (JobwireError, OSError):
            return None
        return sum(counts.get(state, 0) for state in _LEFT)

    def is_empty(self) -> bool:
        """Returns whether there is no job that a worker could ever get. A delayed one may be due."""
        counts = self.ask(self.backend.counts(self.queue))
        return not any(counts.get(state, 0) for state in _TO_COME)
