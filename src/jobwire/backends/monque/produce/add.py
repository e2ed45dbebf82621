"""Adds jobs. Every document has its `_id` before it is sent, so a call whose answer was lost can be repeated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
from jobwire.model import AddStatus

_ROUNDS = 6
_PATIENCE = 20.0
"""Seconds for which an add lives through an election."""


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
        if new.id is not None:
            document["_id"] = ObjectId(new.id)
        payload.check_size(document, len(job.data))
        made.append(document)
    return made


def given_ids(jobs: Sequence[PreparedJob]) -> set[ObjectId]:
    """Returns the ids that callers have given."""
    return {ObjectId(job.new.id) for job in jobs if job.new.id is not None}


async def add(store: Store, made: list[Document], given: Collection[ObjectId] = ()) -> list[Added]:
    """Stores jobs in order, in as few commands as there are changes between jobs with and without a unique key.

    A job whose id was given by the caller is added if the store has none of that id.
    """
    adding = Adding(store.jobs, made, given)
    for _ in range(_ROUNDS):
        if not adding.left():
            return [adding.answers[index] for index in range(len(made))]
        async with store.reaching(_PATIENCE):
            await enduring(adding.attempt, _PATIENCE, store.deadline(ATTEMPT))
    raise StoreUnavailable(f"{store.where}: a unique key changed hands in every one of {_ROUNDS} tries to add a job")


class Adding:
    """The jobs of one call and the answers for those that are decided, by their index in the call.

    An attempt may end at any line because the connection does. The next one goes on with the jobs that have no answer.
    """

    def __init__(self, jobs: AsyncCollection[Document], made: list[Document], given: Collection[ObjectId]) -> None:
        self._jobs = jobs
        self._made = made
        self._given = given
        self._sent: set[int] = set()
        self.answers: dict[int, Added] = {}
        if given:
            self._refuse_repeated()

    def left(self) -> list[int]:
        """Returns the jobs that have no answer yet."""
        return [index for index in range(len(self._made)) if index not in self.answers]

    async def attempt(self) -> None:
        if self._given:
            await self._answer_existing([index for index in self.left() if self._made[index]["_id"] in self._given])
        sending = self.left()
        self._sent.update(sending)
        await self._send(sending)
        await self._name_holders([index for index in self.left() if "uniqueKey" in self._made[index]])

    def _refuse_repeated(self) -> None:
        """Answers for all but the first of the jobs that were given the same id."""
        seen: set[ObjectId] = set()
        for index, document in enumerate(self._made):
            if document["_id"] in seen:
                self.answers[index] = Added(str(document["_id"]), AddStatus.DUPLICATE)
            seen.add(document["_id"])

    async def _answer_existing(self, asked: list[int]) -> None:
        """Answers for jobs whose given id is in the store already.

        A job that was sent before may be there because of that, if the reply was lost. Its time and its data tell it
        from another caller's job of the same id.
        """
        ids = [self._made[index]["_id"] for index in asked]
        found = {one["_id"]: one for one in await self._jobs.find({"_id": {"$in": ids}}).to_list()}
        for index in asked:
            document, there = self._made[index], found.get(self._made[index]["_id"])
            if there is not None:
                same = all(there.get(name) == document.get(name) for name in ("createdAt", "data"))
                ours = same and index in self._sent
                self.answers[index] = Added(str(document["_id"]), AddStatus.ADDED if ours else AddStatus.DUPLICATE)

    async def _send(self, left: list[int]) -> None:
        while left:
            requests = [_request(self._made[index]) for index in left]
            try:
                result = await self._jobs.bulk_write(requests, ordered=True)
            except driver.BulkWriteError as error:
                # Two upserts of one key may both find nothing; the index then refuses the second. And an `_id` of ours
                # that exists is an insert of an earlier try whose answer was lost. An `_id` that the caller gave may
                # be another caller's as well: the next attempt looks at it.
                at = _duplicate_at(error)
                if at is None:
                    raise
                self._note(left[:at], error.details.get("upserted", []))
                document = self._made[left[at]]
                if "uniqueKey" not in document and document["_id"] not in self._given:
                    self.answers[left[at]] = Added(str(document["_id"]))
                left = left[at + 1 :]
            else:
                upserted = [{"index": index, "_id": key} for index, key in (result.upserted_ids or {}).items()]
                self._note(left, upserted)
                return

    def _note(self, sent: list[int], upserted: list[dict[str, Any]]) -> None:
        inserted = {int(one["index"]) for one in upserted}
        for position, index in enumerate(sent):
            if "uniqueKey" not in self._made[index] or position in inserted:
                self.answers[index] = Added(str(self._made[index]["_id"]))

    async def _name_holders(self, refused: list[int]) -> None:
        """Answers for upserts that inserted nothing, with the job that holds the key. If that one has just finished,
        there is none, and the next attempt adds the job."""
        if not refused:
            return
        keys = [self._made[index]["uniqueKey"] for index in refused]
        live = {"name": self._made[refused[0]]["name"], "uniqueKey": {"$in": keys}, "status": {"$in": list(LIVE)}}
        holders = {one["uniqueKey"]: one["_id"] for one in await self._jobs.find(live, {"uniqueKey": 1}).to_list()}
        for index in refused:
            holder = holders.get(self._made[index]["uniqueKey"])
            if holder is not None:
                ours = holder == self._made[index]["_id"]
                self.answers[index] = Added(str(holder), AddStatus.ADDED if ours else AddStatus.DUPLICATE)


def _request(document: Document) -> InsertOne[Document] | UpdateOne:
    if "uniqueKey" not in document:
        return InsertOne(document)
    return UpdateOne(live_holder(document), {"$setOnInsert": document}, upsert=True)


def live_holder(document: Document) -> Document:
    """Returns the peer's filter: a key belongs to one job name, and only live jobs hold one."""
    return {"name": document["name"], "uniqueKey": document["uniqueKey"], "status": {"$in": list(LIVE)}}


def _duplicate_at(error: driver.BulkWriteError) -> int | None:
    faults: list[dict[str, Any]] = error.details.get("writeErrors", [])
    if len(faults) == 1 and faults[0].get("code") == DUPLICATE_KEY and not error.details.get("writeConcernErrors"):
        return int(faults[0]["index"])
    return None


async def add_in(store: Store, made: list[Document], session: Any, given: Collection[ObjectId] = ()) -> list[Added]:
    """Adds jobs inside the caller's transaction: peers see them when it commits."""
    if not isinstance(session, AsyncClientSession):
        raise InvalidOption("transaction", session, "must be an AsyncClientSession of pymongo with a transaction")
    jobs = store.jobs_in(session)
    async with store.reaching():
        try:
            return [await _add_one_in(jobs, document, session, document["_id"] in given) for document in made]
        except driver.DuplicateKeyError as error:
            taken = f"{store.where}: another client took a unique key meanwhile; run the transaction again"
            raise StoreUnavailable(taken) from error
        except driver.PyMongoError as error:
            # The driver repeats a transaction by the labels of its own error, so that stays the cause.
            if error.has_error_label("TransientTransactionError"):
                raise StoreUnavailable(f"{store.where}: the transaction must be run again: {error}") from error
            raise


async def _add_one_in(
    jobs: AsyncCollection[Document], document: Document, session: AsyncClientSession, given: bool
) -> Added:
    # A refused insert would end the caller's transaction, so the id is looked up first.
    if given and await jobs.find_one({"_id": document["_id"]}, {"_id": 1}, session=session):
        return Added(str(document["_id"]), AddStatus.DUPLICATE)
    if "uniqueKey" not in document:
        await jobs.insert_one(document, session=session)
        return Added(str(document["_id"]))
    found = await jobs.find_one_and_update(
        live_holder(document), {"$setOnInsert": document}, upsert=True, return_document=True, session=session
    )
    stands: Document = found or document
    ours = stands["_id"] == document["_id"]
    return Added(str(stands["_id"]), AddStatus.ADDED if ours else AddStatus.DUPLICATE)
