"""Reads the events of a queue from a change stream over the jobs and the side data.

One change may make two events (a job was added, and it waits). So the id of an event is the token of the change before
its own, and a number: `<token>+1` is the first event after that token. The last event of a change has the id
`<token of its own change>+0`. A deletion does not name the queue of what it deleted. A reader therefore reports every
job that is removed from the collection, except those that it has seen in another queue: ids are unique over all queues.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bson import Timestamp
from pymongo import errors as driver
from pymongo.asynchronous.change_stream import AsyncChangeStream

from jobwire.backends.monque.codec import hashable, json_of, runs_of
from jobwire.backends.monque.connection.change_stream import AWAIT_MS, UNREADABLE_TOKEN, open_stream
from jobwire.backends.monque.connection.clock import ms_of
from jobwire.backends.monque.connection.errors import failure_of, reaching, transient
from jobwire.backends.monque.connection.store import Document, Store
from jobwire.backends.monque.rules import CAPABILITIES
from jobwire.backoff import reconnect_delay
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, StoreUnavailable
from jobwire.model import Event, EventKind

_REMEMBERED = 10_000
_CURSOR = re.compile(r"([0-9A-Fa-f]+)\+([0-9]{1,2})")


class MonqueEvents:
    """Implements Events."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def cursor(self, queue: str) -> str:
        return await Reader(self._store, queue).cursor()

    def events(self, queue: str, since: str) -> AsyncIterator[Event]:
        return Reader(self._store, queue).read(since)


class Reader:
    """Reads the events of one queue for one caller."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._others: OrderedDict[Hashable, None] = OrderedDict()

    async def cursor(self) -> str:
        """Returns a cursor from which only later events are read."""
        with reaching(self._store.where):
            async with open_stream(self._store, self._watch(None)) as stream:
                while (token := stream.token) is None:
                    await stream.next()
        return f"{token['_data']}+0"

    async def read(self, since: str) -> AsyncIterator[Event]:
        """Yields the events after a cursor. Continues after an outage of the server."""
        found = _CURSOR.fullmatch(since)
        if found is None:
            raise InvalidOption("since", since, "must be the id of an event, or a cursor")
        token, over = found[1], int(found[2])
        failures, by_time = 0, False
        while True:
            try:
                async with open_stream(self._store, self._watch(token, by_time=by_time)) as stream:
                    while True:
                        change = await stream.next()
                        reached, failures = stream.token, 0
                        # Tokens sort as texts. A stream that was opened by time repeats changes up to the token.
                        if change is not None and by_time and change["_id"]["_data"] <= token:
                            continue
                        by_time = False
                        if change is not None:
                            events = await self._events_of(change)
                            for number, event in enumerate(events, 1):
                                last = number == len(events)
                                here = f"{change['_id']['_data']}+0" if last else f"{token}+{number}"
                                if number > over:
                                    yield _with_id(event, here)
                            over = 0
                            token = change["_id"]["_data"]
                        elif reached is not None:
                            token, over = reached["_data"], 0
            except (driver.PyMongoError, StoreUnavailable) as error:
                # After a transient error, continue from the token. The driver itself waits for a new primary.
                if isinstance(error, driver.OperationFailure) and error.code in UNREADABLE_TOKEN and not by_time:
                    by_time = True
                    continue
                if isinstance(error, driver.PyMongoError) and not transient(error):
                    raise failure_of(error, self._store.where) from error
                await asyncio.sleep(reconnect_delay(failures))
                failures += 1

    def _watch(self, token: str | None, *, by_time: bool = False) -> Coroutine[Any, Any, AsyncChangeStream[Document]]:
        if not self._store.streams:
            raise CAPABILITIES.refusal(Feature.EVENTS)
        names = [self._store.address.collection, self._store.address.side]
        return self._store.database.watch(
            [{"$match": {"ns.coll": {"$in": names}}}],
            full_document="updateLookup",
            max_await_time_ms=AWAIT_MS,
            resume_after=None if token is None or by_time else {"_data": token},
            start_at_operation_time=_time_of(token) if token is not None and by_time else None,
        )

    async def _events_of(self, change: Mapping[str, Any]) -> list[Event]:
        """Returns the events that a change makes, in order and without their ids."""
        kind = change["operationType"]
        document: Document = change.get("fullDocument") or {}
        if kind not in ("insert", "update", "replace", "delete"):
            return []
        key = change["documentKey"]["_id"]
        at = _when(change)
        is_side = change["ns"]["coll"] == self._store.address.side
        if kind == "delete":
            return [] if is_side or hashable(key) in self._others else [_event(EventKind.REMOVED, key, at)]
        if document.get("name") != self._queue:
            if document and not is_side:
                self._remember(hashable(key))
            return []
        fields: Mapping[str, Any] = change["updateDescription"]["updatedFields"] if kind == "update" else document
        if is_side:
            return _of_side_data(key, fields, at)
        if kind == "insert":
            return [
                _event(EventKind.ADDED, key, at, name=self._queue),
                *await self._of_status(key, fields, document, at),
            ]
        return await self._of_status(key, fields, document, at)

    async def _of_status(self, key: Any, fields: Mapping[str, Any], document: Document, at: datetime) -> list[Event]:
        match fields.get("status"):
            case "pending":
                due = ms_of(fields.get("nextRunAt", document.get("nextRunAt")))
                later = due is not None and due > self._store.clock.now_ms()
                return [_event(EventKind.DELAYED if later else EventKind.WAITING, key, at)]
            case "processing":
                return [_event(EventKind.ACTIVE, key, at, worker=str(fields.get("claimedBy")))]
            case "completed":
                return [_event(EventKind.COMPLETED, key, at, result=await self._result(key, fields))]
            case "failed":
                reason = fields.get("failReason", document.get("failReason", ""))
                return [_event(EventKind.FAILED, key, at, error=str(reason))]
            case "cancelled":
                return [_event(EventKind.CANCELLED, key, at)]
            case None if "nextRunAt" in fields:
                return [replace(_event(EventKind.DELAYED, key, at), native_type="rescheduled")]
            case _:
                return []

    async def _result(self, key: Any, fields: Mapping[str, Any]) -> Any:
        async with self._store.reaching():
            side = await self._store.side.find_one({"_id": key}, {"runs": 1})
        return json_of(runs_of(side).get(str(ms_of(fields.get("updatedAt"))), {}).get("result"))

    def _remember(self, key: Hashable) -> None:
        self._others[key] = None
        if len(self._others) > _REMEMBERED:
            self._others.popitem(last=False)


def _of_side_data(key: Any, fields: Mapping[str, Any], at: datetime) -> list[Event]:
    if "paused" in fields:
        return [_event(EventKind.PAUSED if fields["paused"] else EventKind.RESUMED, None, at)]
    if "progress" in fields:
        return [_event(EventKind.PROGRESS, key, at, progress=json_of(fields["progress"]))]
    return []


def _event(
    kind: EventKind, key: Any, at: datetime, *, result: Any = None, error: str | None = None, **data: Any
) -> Event:
    """Returns an event without its id. Monque has no names for changes of a document, so `native_type` is ours too."""
    return Event("", kind, kind.value, None if key is None else str(key), at, data, result, error)


def _with_id(event: Event, here: str) -> Event:
    return replace(event, id=here)


def _time_of(token: str) -> Timestamp:
    """Returns the cluster time in a token, which follows one byte for its type."""
    return Timestamp(int(token[2:10], 16), int(token[10:18], 16))


def _when(change: Mapping[str, Any]) -> datetime:
    wall = change.get("wallTime")
    if isinstance(wall, datetime):
        return wall
    return datetime.fromtimestamp(change["clusterTime"].time, UTC)
