"""A store's own backend for the blocking code of loads and moves: pausing, counting, removing, schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from jobwire import urls
from jobwire.boundary import Backend, Feature, Pause, Schedules
from jobwire.connection import load_backend
from jobwire.pipeline.stores.address import reached

_Answer = TypeVar("_Answer")


class BlockingBackend:
    """An open backend for blocking code. Its `url` is one that every process can reach."""

    def __init__(self, url: str, backend: Backend, runner: asyncio.Runner, thread: ThreadPoolExecutor) -> None:
        self.url = url
        self.backend = backend
        self.can = backend.capabilities
        self._runner = runner
        self._thread = thread

    @property
    def pause(self) -> Pause:
        """The backend's part for pauses. Raises NotSupported if it has none."""
        return self.can.part(self.backend.pause, Feature.PAUSE)

    @property
    def schedules(self) -> Schedules:
        """The backend's part for schedules. Raises NotSupported if it has none."""
        return self.can.part(self.backend.schedules, Feature.SCHEDULES)

    def ask(self, question: Coroutine[Any, Any, _Answer]) -> _Answer:
        """Returns the result of a call of the backend. The call runs in a thread of its own, as a caller in a notebook
        has an event loop already."""
        return self._thread.submit(self._runner.run, question).result()


@contextmanager
def blocking_backend(url: str) -> Generator[BlockingBackend]:
    """Opens the backend of the URL for the time of the block; an embedded server keeps running inside it."""
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
