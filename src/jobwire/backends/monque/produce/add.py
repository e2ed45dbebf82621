"""Adds jobs. Every document has its `_id` before it is sent, so a call whose answer was lost can be repeated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from bson import ObjectId
from pymongo import InsertOne, UpdateOne
from pymongo import errors as driver
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection

from jobwire import codec as json_codec
from jobwire.backends.monque import payload
from jobwire.backends.monque.codec import new_document
from jobwire.backends.monque.connection.clock import ms_of
from jobwire.backends.monque.connection.errors import DUPLICATE_KEY, enduring
from jobwire.backends.monque.connection.indexes import LIVE
from jobwire.backends.monque.connection.store import ATTEMPT, Document, Store
from jobwire.backends.monque.rules import to_bson
from jobwire.boundary import Added, PreparedJob
from jobwire.errors import InvalidOption, StoreUnavailable

_ROUNDS = 6
_PATIENCE = 20.0
"""Seconds for which an add is repeated while the replica set elects a primary."""
_TAKEN = "unique key taken"
_THERE = "a job with this id is there"


def documents(queue: str, jobs: Sequence[PreparedJob], now: int) -> list[Document]:
    """Returns the jobs as they will be stored. Raises if one can't be stored, before anything is sent."""
    made: list[Document] = []
    for job in jobs:
        new = job.new
        due = ms_of(new.run_at)
        if due is None:
            due = now + round(new.delay_at(now / 1000) * 1000)
        data = to_bson(json_codec.loads(job.data))
        key = new.unique.key if new.unique is not None else None
        document = new_document(queue, data, now=now, due=due, unique_key=key)
        if "id" in new.extra:
            document["_id"] = ObjectId(str(new.extra["id"]))
        payload.check_size(document, len(job.data))
        made.append(document)
    return made


def given_ids(jobs: Sequence[PreparedJob]) -> set[ObjectId]:
    """Returns the ids that the caller has given."""
    return {ObjectId(str(job.new.extra["id"])) for job in jobs if "id" in job.new.extra}


async def add(store: Store, made: list[Document], given: Collection[ObjectId] = ()) -> list[Added]:
    """Stores documents in order. Returns one answer for each. Consecutive jobs that all have a unique key, or all have
    none, are sent in one command.

    Of those whose id the caller has given, only documents that the store does not have are added.
    """
    answers: dict[int, Added] = {}
    if given:
        async with store.reaching():
            there = {one["_id"] for one in await store.jobs.find({"_id": {"$in": list(given)}}, {"_id": 1}).to_list()}
        for index, document in enumerate(made):
            if document["_id"] in there:
                answers[index] = Added(str(document["_id"]), _THERE)
    open_ones = [index for index in range(len(made)) if index not in answers]
    for _ in range(_ROUNDS):
        if not open_ones:
            return [answers[index] for index in range(len(made))]
        attempt = partial(_round, store.jobs, made, open_ones, answers)
        async with store.reaching(_PATIENCE):
            await enduring(attempt, _PATIENCE, store.deadline(ATTEMPT))
        open_ones = [index for index in open_ones if index not in answers]
    raise StoreUnavailable(
        f"{store.where}: other clients took and freed a unique key during each of {_ROUNDS} attempts"
    )


async def _round(
    jobs: AsyncCollection[Document], made: list[Document], open_ones: list[int], answers: dict[int, Added]
) -> None:
    left = [index for index in open_ones if index not in answers]
    await _send(jobs, made, left, answers)
    await _name_holders(jobs, made, left, answers)


async def _send(
    jobs: AsyncCollection[Document], made: list[Document], open_ones: list[int], answers: dict[int, Added]
) -> None:
    left = list(open_ones)
    while left:
        requests = [_request(made[index]) for index in left]
        try:
            result = await jobs.bulk_write(requests, ordered=True)
        except driver.BulkWriteError as error:
            # Two upserts of one key may both find nothing, and the index then refuses the second. If an `_id` of ours
            # exists, an earlier attempt inserted it and its answer was lost.
            at = _duplicate_at(error)
            if at is None:
                raise
            _record(made, left[:at], error.details.get("upserted", []), answers)
            document = made[left[at]]
            if "uniqueKey" not in document:
                answers[left[at]] = Added(str(document["_id"]))
            left = left[at + 1 :]
        else:
            upserted = [{"index": index, "_id": key} for index, key in (result.upserted_ids or {}).items()]
            _record(made, left, upserted, answers)
            return


def _request(document: Document) -> InsertOne[Document] | UpdateOne:
    if "uniqueKey" not in document:
        return InsertOne(document)
    return UpdateOne(live_holder(document), {"$setOnInsert": document}, upsert=True)


def live_holder(document: Document) -> Document:
    """Returns the peer's filter for the job that holds a key: a key belongs to one queue, and only live jobs hold
    one."""
    return {"name": document["name"], "uniqueKey": document["uniqueKey"], "status": {"$in": list(LIVE)}}


def _duplicate_at(error: driver.BulkWriteError) -> int | None:
    faults: list[dict[str, Any]] = error.details.get("writeErrors", [])
    if len(faults) == 1 and faults[0].get("code") == DUPLICATE_KEY and not error.details.get("writeConcernErrors"):
        return int(faults[0]["index"])
    return None


def _record(made: list[Document], sent: list[int], upserted: list[dict[str, Any]], answers: dict[int, Added]) -> None:
    inserted = {int(one["index"]) for one in upserted}
    for position, index in enumerate(sent):
        if "uniqueKey" not in made[index] or position in inserted:
            answers[index] = Added(str(made[index]["_id"]))


async def _name_holders(
    jobs: AsyncCollection[Document], made: list[Document], open_ones: list[int], answers: dict[int, Added]
) -> None:
    """Answers upserts that inserted nothing with the job that holds the key. If that has just finished there is no
    answer, and the caller tries again."""
    refused = [index for index in open_ones if index not in answers]
    if not refused:
        return
    keys = [made[index]["uniqueKey"] for index in refused]
    live = {"name": made[refused[0]]["name"], "uniqueKey": {"$in": keys}, "status": {"$in": list(LIVE)}}
    holders = {one["uniqueKey"]: one["_id"] for one in await jobs.find(live, {"uniqueKey": 1}).to_list()}
    for index in refused:
        holder = holders.get(made[index]["uniqueKey"])
        if holder is not None:
            ours = holder == made[index]["_id"]
            answers[index] = Added(str(holder), None if ours else _TAKEN)


async def add_in(store: Store, made: list[Document], session: Any) -> list[Added]:
    """Adds jobs inside the caller's transaction. Peers see them when it commits."""
    if not isinstance(session, AsyncClientSession):
        raise InvalidOption("connection", session, "must be an AsyncClientSession of pymongo with a transaction")
    jobs = store.jobs_in(session)
    async with store.reaching():
        try:
            return [await _add_one_in(jobs, document, session) for document in made]
        except driver.DuplicateKeyError as error:
            taken = f"{store.where}: another client took a unique key meanwhile; run the transaction again"
            raise StoreUnavailable(taken) from error
        except driver.PyMongoError as error:
            # The driver repeats a transaction by the labels of its own error, so that stays the cause.
            if error.has_error_label("TransientTransactionError"):
                raise StoreUnavailable(f"{store.where}: the transaction must be run again: {error}") from error
            raise


async def _add_one_in(jobs: AsyncCollection[Document], document: Document, session: AsyncClientSession) -> Added:
    if "uniqueKey" not in document:
        await jobs.insert_one(document, session=session)
        return Added(str(document["_id"]))
    found = await jobs.find_one_and_update(
        live_holder(document), {"$setOnInsert": document}, upsert=True, return_document=True, session=session
    )
    stands: Document = found or document
    ours = stands["_id"] == document["_id"]
    return Added(str(stands["_id"]), None if ours else _TAKEN)
