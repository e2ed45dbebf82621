"""Queues as pg-boss stores them: one row each, which must exist before the first job is added."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from jobwire.backends.pgboss.connection.schema import lock_key
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import text
from jobwire.backends.pgboss.rules import SETTING_RULES, check_name
from jobwire.errors import InvalidOption, StoreRefused

NEW_QUEUE: Mapping[str, Any] = {"policy": "standard", "retryLimit": 0, "notify": True}
"""The settings of a queue that jobwire makes because it is missing. Its jobs run once unless they have attempts of
their own, and its workers are woken."""

_FRESH_FOR = 30.0


@dataclass(frozen=True, slots=True)
class QueueRow:
    """The settings of a queue on which statements depend."""

    name: str
    policy: str
    table: str
    partition: bool
    notify: bool
    expire_seconds: int
    dead_letter: str | None
    read_at: float


class Queues:
    """A cache of rows. A missing row is read at once, a cached one again after 30 seconds."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, QueueRow] = {}

    async def find(self, name: str) -> QueueRow | None:
        """Returns the queue's row, at most 30 seconds old. Returns None if there is no such queue."""
        row = self._rows.get(name)
        return row if row is not None and self.is_fresh(row) else await self.reread(name)

    async def get(self, name: str) -> QueueRow:
        """Returns the queue's row. Raises StoreRefused if there is no such queue."""
        row = await self.find(name)
        if row is None:
            raise no_such_queue(name)
        return row

    def is_fresh(self, row: QueueRow) -> bool:
        return self._rows.get(row.name) is row and time.monotonic() - row.read_at < _FRESH_FOR

    async def reread(self, name: str) -> QueueRow | None:
        found = await self._store.ask("queue_row", {"queue": text(name)})
        self._rows.pop(name, None)
        if not found:
            return None
        [(policy, table, partition, notify, expire_seconds, dead_letter)] = found
        row = QueueRow(name, policy, table, partition, notify, expire_seconds, dead_letter, time.monotonic())
        self._rows[name] = row
        return row

    async def ensure(self, name: str) -> QueueRow:
        """Returns the queue's row, and makes the queue if there is none."""
        row = await self.find(name)
        if row is None:
            check_name("queue", name)
            await self.create(name, NEW_QUEUE)
            row = await self.reread(name)
        if row is None:
            raise StoreRefused(f"queue {name!r} was deleted by another client at the moment it was made")
        return row

    async def create(self, name: str, options: Mapping[str, Any]) -> None:
        """Makes a queue. Leaves one that exists as it is."""
        values = {"queue": text(name), "options": orjson.dumps(dict(options)), "lock": await self.lock("create-queue")}
        await self._store.run(
            [
                (self._store.statements.get("lock"), values),
                (self._store.statements.get("create_queue"), values),
            ]
        )

    async def lock(self, suffix: str) -> bytes:
        """Returns the key of the advisory lock that every client of this schema takes for one purpose."""
        return str(lock_key(await self._database(), self._store.name, suffix)).encode()

    async def _database(self) -> str:
        [(name,)] = await self._store.ask("database", {})
        return str(name)

    def forget(self, name: str) -> None:
        self._rows.pop(name, None)


def check_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a queue, given by their native names. Raises InvalidOption for wrong ones."""
    for name, value in options.items():
        rule = SETTING_RULES.get(name)
        if rule is None:
            raise InvalidOption(name, value, f"is not a setting of a queue; known are {', '.join(SETTING_RULES)}")
        if value is not None:
            rule(name, value)
    if options.get("retryDelayMax") is not None and not options.get("retryBackoff"):
        raise InvalidOption("retryDelayMax", options["retryDelayMax"], "needs retryBackoff in the same call")
    return dict(options)


def no_such_queue(name: str) -> StoreRefused:
    """Returns the error for a queue that does not exist, or was deleted."""
    return StoreRefused(f"there is no queue {name!r}")
