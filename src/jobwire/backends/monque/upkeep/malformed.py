"""Fails jobs of other clients that no worker can run, because no claim finds them or none can identify them.

The reason names the field. A job with an unknown status is only reported: the status may be that of a newer peer.
"""

from __future__ import annotations

from collections.abc import Sequence

from bson import DatetimeMS
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

from jobwire.backends.monque.codec import STATES, fault_of, id_fault
from jobwire.backends.monque.connection.clock import moment
from jobwire.backends.monque.connection.store import READABLE, Document, Store
from jobwire.boundary import DutyReport
from jobwire.counted import counted

_AT_ONCE = 500
_FEW = 5
_RUNNABLE_IDS = ["objectId", "string", "int", "long", "binData"]
SOUND_ID: Document = {"$type": _RUNNABLE_IDS}
_REPLACING: CodecOptions[RawBSONDocument] = READABLE.with_options(document_class=RawBSONDocument)
UNDATED: Document = {"$not": {"$gte": DatetimeMS(-(2**63))}}
"""The filter of values that are not dates. In this form the index skips all dates, however many jobs wait. An array of
dates does not match: a claim finds it when one of the dates has come."""


class Malformed:
    """The duty that finds malformed jobs which no claim of the queue would find."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._queue = queue
        self._reported: list[str] = []

    async def run(self) -> DutyReport:
        """Fails jobs without a date, and reports jobs with an unknown status."""
        found = await self._fail_undated()
        strange = await self._unknown()
        if strange != self._reported:  # they are not changed, so they are reported once
            found += strange
            self._reported = strange
        if not found:
            return DutyReport()
        more = "; …" if len(found) > _FEW else ""
        return DutyReport(note=f"{counted(len(found), 'malformed job')}: {'; '.join(found[:_FEW])}{more}")

    async def _fail_undated(self) -> list[str]:
        undated: Document = {"name": self._queue, "status": "pending", "nextRunAt": UNDATED}
        async with self._store.reaching():
            found = await self._store.jobs.find(undated, limit=_AT_ONCE).to_list()
            for one in found:
                failed = failure(self._store, fault_of(one) or "malformed job")
                await self._store.jobs.update_one({"_id": one["_id"], **undated}, {"$set": failed})
        return _described(found)

    async def _unknown(self) -> list[str]:
        strange: Document = {"name": self._queue, "status": {"$nin": list(STATES)}}
        async with self._store.reaching():
            return _described(await self._store.jobs.find(strange, limit=_AT_ONCE).to_list())


async def fail_unsound_ids(store: Store, due: Document, most: int) -> None:
    """Fails those of the first due jobs of a queue whose `_id` a worker can't use. They are read as bytes, since a
    filter can't match a text that is not UTF-8 in another way."""
    async with store.reaching():
        for one in await store.raw_jobs.find(due, {"_id": 1}, sort=[("nextRunAt", 1)], limit=most).to_list():
            fault = id_fault(RawBSONDocument(one.raw, _REPLACING)["_id"])
            if fault is not None:
                await store.jobs.update_one({"$and": [one, {"status": "pending"}]}, {"$set": failure(store, fault)})


def _described(found: Sequence[Document]) -> list[str]:
    """Returns one text for each job: its id and its fault."""
    return [f"{one['_id']}: {fault_of(one) or 'malformed job'}" for one in found]


def failure(store: Store, reason: str) -> Document:
    """Returns the fields that fail a job."""
    return {"status": "failed", "failReason": reason, "updatedAt": moment(store.clock.now_ms())}
