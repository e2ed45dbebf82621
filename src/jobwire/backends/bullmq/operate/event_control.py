"""The past of the event stream, writing to it, and limiting its length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobwire.backends.bullmq.codec import number
from jobwire.backends.bullmq.connection import Server
from jobwire.backends.bullmq.operate.events import event_of
from jobwire.model import Event

DEFAULT_EVENTS = 10_000


class BullEventControl:
    """Implements EventControl."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def last(self, queue: str, limit: int) -> Sequence[Event]:
        newest: list[Any] = await self._server.store.call(
            "XREVRANGE", self._server.keys(queue).events, "+", "-", "COUNT", limit
        )
        return [event_of(raw_id.decode(), _flat(fields)) for raw_id, fields in reversed(newest)]

    async def publish(self, queue: str, event: str, fields: Mapping[str, str]) -> str:
        """Writes an event and trims the stream to the queue's limit. Node's producer of events trims it to 1000."""
        keys = self._server.keys(queue)
        kept = number(await self._server.store.call("HGET", keys.meta, "opts.maxLenEvents")) or DEFAULT_EVENTS
        parts = [part for pair in fields.items() for part in pair]
        raw_id: bytes = await self._server.store.call(
            "XADD", keys.events, "MAXLEN", "~", kept, "*", "event", event, *parts
        )
        return raw_id.decode()

    async def trim_events(self, queue: str, keep: int) -> int:
        return await self._server.store.call("XTRIM", self._server.keys(queue).events, "MAXLEN", "~", keep)

    async def limit_events(self, queue: str, keep: int) -> None:
        await self._server.store.call("HSET", self._server.keys(queue).meta, "opts.maxLenEvents", keep)


def _flat(fields: Mapping[bytes, bytes] | None) -> list[bytes]:
    """Returns names and values in turn. The driver returns them as a dict, None for an entry without any."""
    return [part for pair in (fields or {}).items() for part in pair]
