"""A store's own backend for the blocking code of the movers: pausing, counting, removing, schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from jobwire import urls
from jobwire.backend import Backend
from jobwire.connection import load_backend
from jobwire.pipeline.stores.address import reached

_Answer = TypeVar("_Answer")


class BlockingBackend:
    """A backend that is open, and the way to wait for what it answers. `url` is one that every process can reach."""

    def __init__(self, url: str, backend: Backend, runner: asyncio.Runner, thread: ThreadPoolExecutor) -> None:
        self.url = url
        self.backend = backend
        self.can = backend.capabilities
        self._runner = runner
        self._thread = thread

    def ask(self, question: Coroutine[Any, Any, _Answer]) -> _Answer:
        """The answer to a call of the backend. It runs in a thread of its own, as a caller in a notebook has an event
        loop already."""
        return self._thread.submit(self._runner.run, question).result()


@contextmanager
def blocking_backend(url: str) -> Generator[BlockingBackend]:
    """The store at the URL, for as long as it is needed; an embedded server is kept running meanwhile."""
    with reached(url) as reachable, ThreadPoolExecutor(1, "jobwire-control") as thread:
        runner = asyncio.Runner()
        try:
            store = BlockingBackend(reachable, load_backend(urls.parse(reachable)), runner, thread)
            try:
                store.ask(store.backend.open())
                yield store
            finally:
                store.ask(store.backend.close())
        finally:
            thread.submit(runner.close).result()
