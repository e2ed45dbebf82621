"""The queue's event stream, read as BullMQ's QueueEvents does: by a blocking read on a connection of its own.

A cursor is the id of the last event seen. Ids never go backwards, so a reconnected reader continues exactly where it
was. Events that the server has trimmed before they were read are lost: queues keep about the last 10000.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any

from jobwire import codec
from jobwire.backends.bullmq.connection import Server
from jobwire.backoff import reconnect_delay
from jobwire.errors import InvalidOption, MalformedPayload, StoreUnavailable
from jobwire.model import Event, EventKind

_BEGINNING = "0-0"
_BLOCK_MS = 10_000
_BATCH = 500
_CURSOR = re.compile(r"\d{1,20}(-\d{1,20})?")
_KINDS = {
    **{kind.value: kind for kind in EventKind if kind is not EventKind.OTHER},
    "waiting-children": EventKind.WAITING_CHILDREN,
    "duplicated": EventKind.DUPLICATE,
    "deduplicated": EventKind.DUPLICATE,
}
"""Kinds by BullMQ's names of events. `debounced`, which comes with `deduplicated`, counts as OTHER."""
_JSON_FIELDS = {"progress": "data", "completed": "returnvalue"}


class BullEvents:
    """Implements Events."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def cursor(self, queue: str) -> str:
        """Returns the id of the newest event, or the lowest possible id if there is none."""
        newest: list[Any] = await self._server.store.call(
            "XREVRANGE", self._server.keys(queue).events, "+", "-", "COUNT", 1
        )
        return newest[0][0].decode() if newest else _BEGINNING

    async def events(self, queue: str, since: str) -> AsyncGenerator[Event, None]:
        """Yields the events after the cursor, until the backend is closed."""
        keys = self._server.keys(queue)
        if not _CURSOR.fullmatch(since):
            raise InvalidOption("since", since, "must be the id of an event or what cursor() returned")
        link = self._server.store.blocking(keys.events, keys.events_connection_name())
        failures = 0
        try:
            while True:
                try:
                    command = ("XREAD", "COUNT", _BATCH, "BLOCK", _BLOCK_MS, "STREAMS", keys.events, since)
                    answer: list[Any] | None = await link.call(*command, within=_BLOCK_MS / 1000 + 5)
                except StoreUnavailable:
                    _ = self._server.store.client  # raises if the backend is closed, so that the loop ends
                    await asyncio.sleep(reconnect_delay(failures))
                    failures += 1
                    continue
                failures = 0
                for raw_id, fields in answer[0][1] if answer else ():
                    since = raw_id.decode()
                    yield event_of(since, fields or ())
        finally:
            await link.drop()


def event_of(event_id: str, fields: Sequence[bytes]) -> Event:
    """Returns an entry of the stream as an Event. A value that should be JSON and isn't is returned as text."""
    texts = [field.decode(errors="replace") for field in fields]
    data: dict[str, Any] = dict(zip(texts[::2], texts[1::2], strict=False))
    kind = data.pop("event", "")
    json_field = _JSON_FIELDS.get(kind)
    if json_field in data:
        data[json_field] = _json_or_text(data[json_field])
    return Event(
        id=event_id,
        kind=_KINDS.get(kind, EventKind.OTHER),
        native_type=kind,
        job_id=data.get("jobId"),
        at=_moment(event_id),
        data=data,
        result=data.get("returnvalue") if kind == "completed" else None,
        error=data.get("failedReason") if kind == "failed" else None,
    )


def _json_or_text(value: str) -> Any:
    try:
        return codec.loads(value)
    except MalformedPayload:
        return value


def _moment(event_id: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(event_id.partition("-")[0]) / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
