"""Adds jobs with pg-boss's own options, and changes jobs that wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import text
from jobwire.backends.pgboss.produce.add import Adding
from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.backends.pgboss.produce.native_options import columns_of
from jobwire.backends.pgboss.queues import Queues
from jobwire.backends.pgboss.rules import check_options, encoded
from jobwire.backends.uuid7 import new_id
from jobwire.boundary import Added
from jobwire.errors import InvalidOption
from jobwire.model import AddStatus


class Upserted(NamedTuple):
    """The id of the job that has the key, and what was done: `status` is ADDED for a new job. Otherwise `updated` is
    True if the job that has the key was changed, and False if it could not be, as it does not wait any more."""

    id: str
    status: AddStatus
    updated: bool = False


class Changing:
    """Adds and changes jobs of one store. `Boss` describes what each method does."""

    def __init__(self, store: Store, queues: Queues, adding: Adding) -> None:
        self._store = store
        self._queues = queues
        self._adding = adding

    async def send(self, name: str, data: Any, options: Mapping[str, Any], **columns: Any) -> Added:
        check_options(options)
        queue = await self._queues.get(name)
        row = {"id": new_id(), **columns_of(options), **columns, "data": orjson.Fragment(encoded("data", data))}
        [added] = await self._adding.insert(queue, [row])
        return added

    async def debounce(self, name: str, data: Any, seconds: int, key: str | None, options: Mapping[str, Any]) -> Added:
        slot = {**options, "singletonSeconds": seconds, "singletonKey": key, "singletonNextSlot": True}
        return await self.send(name, data, slot)

    async def update(
        self, name: str, job_id: str | None, key: str | None, match: str, changes: Mapping[str, Any]
    ) -> list[str]:
        if (job_id is None) == (key is None):
            raise InvalidOption("id", job_id, "give exactly one of id and singletonKey")
        if match not in ("newest", "oldest", "all"):
            raise InvalidOption("match", match, "must be newest, oldest or all")
        queue = await self._queues.find(name)
        if queue is None or (job_id is not None and not is_id(job_id)):
            return []
        options = {option: value for option, value in changes.items() if option != "data"}
        check_options(options)
        features = ["by_id" if job_id is not None else "by_key"]
        if key is not None and match != "all":
            features.append(match)
        if "data" in changes:
            features.append("with_data")
        values = {
            "queue": text(name), "id": text(job_id), "key": text(key), **self._store.channels,
            "options": orjson.dumps(columns_of(options)), "data": _column(changes.get("data")),
        }  # fmt: skip
        rows = await self._store.ask("update_jobs", values, table=queue.table, features=features)
        return [changed for changed, _ in rows]

    async def upsert(self, name: str, key: str, data: Any, options: Mapping[str, Any]) -> Upserted:
        """Changes the job that waits. If there is none, adds one. If another client has added one meanwhile, changes
        that."""
        changes = {**options, "data": data}
        changed = await self.update(name, None, key, "newest", changes)
        if not changed:
            mark = {"upsert_by_key": True} if self._store.layout.has("upsert_by_key") else {}
            added = await self.send(name, data, {**options, "singletonKey": key}, **mark)
            if added.status is not AddStatus.ADDED:
                changed = await self.update(name, None, key, "newest", changes)
            if not changed:
                return Upserted(*added)
        return Upserted(changed[0], AddStatus.DUPLICATE, updated=True)


def _column(data: Any) -> bytes | None:
    return None if data is None else encoded("data", data)
