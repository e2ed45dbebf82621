"""The queue's event stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from jobwire.backends.memory.connection import Access
from jobwire.errors import InvalidOption
from jobwire.model import Event


class MemoryEvents:
    """Implements Events."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def cursor(self, queue: str) -> str:
        with self._access.locked(queue) as (state, _):
            return str(state.log.last)

    async def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        if not since.isdecimal():
            raise InvalidOption("since", since, "must be the id of an event, or a cursor")
        last = int(since)
        store = self._access.store()
        while True:
            with self._access.locked(queue) as (state, _):
                happened = state.log.after(last)
                sleeper = state.news.register() if not happened else None
            if sleeper is not None:
                try:
                    await sleeper
                finally:
                    with store.lock:
                        state.news.leave(sleeper)
            for event in happened:
                last = event.number
                yield event.event()


class MemoryEventControl:
    """Implements EventControl."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def last(self, queue: str, limit: int) -> Sequence[Event]:
        with self._access.locked(queue) as (state, _):
            return [event.event() for event in state.log.after(0)[-limit:]]

    async def publish(self, queue: str, event: str, fields: Mapping[str, str]) -> str:
        with self._access.locked(queue) as (state, now):
            state.log_event(event, now, None, **fields)
            return str(state.log.last)

    async def trim_events(self, queue: str, keep: int) -> int:
        with self._access.locked(queue) as (state, _):
            return state.log.trim(keep)

    async def limit_events(self, queue: str, keep: int) -> None:
        with self._access.locked(queue) as (state, _):
            state.log.keep(keep)
