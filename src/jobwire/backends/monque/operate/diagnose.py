"""Data of a Monque collection that is not as it should be, beside the settings of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import IndexModel

from jobwire.backends.monque.codec import STATES
from jobwire.backends.monque.connection import indexes, side_version
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.store import LONG, Document, Store
from jobwire.backends.monque.operate.diagnose_server import MongoServerChecks
from jobwire.backends.monque.upkeep.recover import stale
from jobwire.backends.monque.work.settle import RELEASE
from jobwire.backends.side_version import bring_up_to_date, findings
from jobwire.boundary import Check, Finding, FindingKind, Severity, Thresholds
from jobwire.boundary.finding_kinds import (
    INDEX_EXTRA,
    INDEX_MISSING,
    LOCKS,
    SIDE_OLDER,
    STORE_EMPTY,
)
from jobwire.checks import seconds
from jobwire.counted import counted, few
from jobwire.native import MonqueWorker

DELETING_INDEX = FindingKind(
    "deleting-index",
    Severity.CRITICAL,
    "the server deletes jobs by their age",
    "waiting and active jobs vanish with the finished ones",
    "drop the index, and give workers keep_completed=Keep(age=…)",
)
CAPPED = FindingKind(
    "capped",
    Severity.CRITICAL,
    "the collection of jobs is capped",
    "when it is full, each new job deletes the oldest one",
    "move its jobs to a collection without a limit",
)
UNKNOWN_STATUS = FindingKind(
    "unknown-status",
    Severity.WARNING,
    "jobs have a status that no worker knows",
    "they are never run and never deleted",
    "correct their status: it must be pending to be run",
)
_AT_ONCE = 100
_LOCK_TIMEOUT_MS = round(seconds("lock_timeout", MonqueWorker().lock_timeout) * 1000)


class MonqueDiagnosis:
    """Implements Diagnosis."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._server = MongoServerChecks(store)

    async def server(self) -> str:
        return await self._server.server()

    async def now(self) -> float:
        return await self._server.now()

    async def stalled(self, queue: str, limit: int) -> Sequence[str]:
        condition = stale(queue, _LOCK_TIMEOUT_MS)
        async with self._store.reaching():
            found = await self._store.jobs.find(condition, {"_id": 1}, limit=limit).to_list()
        return [str(one["_id"]) for one in found]

    def checks(self, queues: Sequence[str], thresholds: Thresholds) -> Sequence[Check]:
        async def side() -> Sequence[Finding]:
            return await findings(side_version.MonqueSideVersion(self._store), side_version.STEPS)

        async def statuses() -> Sequence[Finding]:
            return [finding for queue in queues for finding in await self._unknown(queue)]

        return [
            *self._server.checks(thresholds),
            Check("indexes", self._indexes),
            Check("version of side data", side),
            Check("locks", self._locks),
            Check("statuses", statuses),
        ]

    async def fix(self, finding: Finding) -> str:
        """Makes missing indexes, updates side data, or releases locks that no worker owns."""
        store = self._store
        if finding.code == INDEX_MISSING.code:
            async with store.reaching(LONG):
                await store.jobs.create_indexes(indexes.job_indexes())
                await store.side.create_indexes(indexes.side_indexes())
            return finding.fix
        if finding.code == SIDE_OLDER.code:
            await bring_up_to_date(side_version.MonqueSideVersion(store), side_version.STEPS)
            return finding.fix
        if finding.code == LOCKS.code:
            back = {"status": "pending", "updatedAt": moment(store.clock.now_ms())}
            async with store.reaching():
                freed = await store.jobs.update_many(self._ownerless(), {"$set": back, "$unset": RELEASE})
            return f"released {counted(freed.modified_count, 'job')}"
        return "nothing was done"

    # --- the collections --------------------------------------------------------------------------------------------

    async def _indexes(self) -> Sequence[Finding]:
        store = self._store
        found: list[Finding] = []
        async with store.reaching():
            made = await store.database.list_collection_names()
            options: Mapping[str, Any] = await store.jobs.options()
            on_jobs, on_side = await store.jobs.index_information(), await store.side.index_information()
        if options.get("capped"):
            found.append(
                CAPPED.found(f"collection {store.address.collection} is capped at {options.get('size', 0):,} bytes")
            )
        if store.address.collection in made:
            found += _compared(store.address.collection, on_jobs, indexes.job_indexes(), [indexes.retention_index()])
        else:
            found.append(STORE_EMPTY.found(f"there is no collection {store.address.collection}"))
        if store.address.side in made:
            found += _compared(store.address.side, on_side, indexes.side_indexes(), [])
        return found

    def _ownerless(self) -> Document:
        """Returns the filter of active jobs without an owner. No worker can settle them, and the peer does not recover
        them. They were not changed for so long that no worker runs them."""
        old = moment(self._store.clock.now_ms() - _LOCK_TIMEOUT_MS)
        return {
            "status": "processing",
            "claimedBy": {"$not": {"$type": "string"}},
            "$or": [{"updatedAt": {"$lt": old}}, {"updatedAt": {"$not": {"$type": "date"}}}],
        }

    async def _locks(self) -> Sequence[Finding]:
        async with self._store.reaching():
            found = await self._store.jobs.find(self._ownerless(), {"_id": 1}, limit=_AT_ONCE).to_list()
        if not found:
            return []
        number = f"{_AT_ONCE} jobs or more" if len(found) == _AT_ONCE else counted(len(found), "job")
        return [
            LOCKS.found(
                f"processing without claimedBy: {number} ({few([str(one['_id']) for one in found])})",
                risk="no worker can complete or fail them, and Node does not recover them",
                fix=f"make {number} that no worker owns ready again",
            )
        ]

    async def _unknown(self, queue: str) -> Sequence[Finding]:
        strange: Document = {"name": queue, "status": {"$nin": list(STATES)}}
        async with self._store.reaching():
            found = await self._store.jobs.find(strange, {"status": 1}, limit=_AT_ONCE).to_list()
        if not found:
            return []
        some = few([f"{one['_id']} is {one.get('status')!r}" for one in found])
        return [UNKNOWN_STATUS.found(f"{counted(len(found), 'job')}: {some}", queue=queue)]


def _compared(
    collection: str, there: Mapping[str, Any], wanted: Sequence[IndexModel], optional: Sequence[IndexModel]
) -> list[Finding]:
    """Returns findings about missing indexes, those that delete, and those that are not used."""
    found: list[Finding] = []
    needed = {one.document["name"] for one in wanted}
    missing = sorted(needed - set(there))
    if missing:
        evidence = f"collection {collection} has no {', '.join(missing)}"
        found.append(INDEX_MISSING.found(evidence, remedy="jobwire doctor --fix", fix=f"create {', '.join(missing)}"))
    extra = sorted(set(there) - needed - {one.document["name"] for one in optional} - {"_id_"})
    deleting = [name for name in there if "expireAfterSeconds" in there[name]]
    for name in deleting:
        evidence = f"index {name} of {collection} has expireAfterSeconds {there[name]['expireAfterSeconds']:,}"
        found.append(DELETING_INDEX.found(evidence, remedy=_drop(collection, name)))
    unused = [name for name in extra if name not in deleting]
    if unused:
        evidence = f"collection {collection} also has {few(unused)}"
        found.append(INDEX_EXTRA.found(evidence, remedy=_drop(collection, unused[0])))
    return found


def _drop(collection: str, name: str) -> str:
    return f"db.getCollection({collection!r}).dropIndex({name!r})"
