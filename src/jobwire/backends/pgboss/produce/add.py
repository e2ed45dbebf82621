"""Adds jobs: turns options into columns, stores the rows, and finds out why a job was not added."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from jobwire.backends.pgboss.connection import caller_transaction
from jobwire.backends.pgboss.connection.errors import (
    CHECK_VIOLATION,
    FOREIGN_KEY_VIOLATION,
    UNDEFINED_TABLE,
    UNIQUE_VIOLATION,
    Refused,
)
from jobwire.backends.pgboss.connection.pipelined import Call
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import plain_list, text
from jobwire.backends.pgboss.produce.native_options import are_alike, columns_of, is_plain, options_of
from jobwire.backends.pgboss.queues import QueueRow, Queues, no_such_queue
from jobwire.backends.uuid7 import new_ids
from jobwire.boundary import Added, PreparedJob
from jobwire.errors import InvalidOption
from jobwire.model import AddStatus

_TOGETHER = 2000
_BETWEEN = b"\x1f"
"""Stands between the data of two jobs. JSON never holds this character: it is written as an escape there."""
_MOVED = (UNDEFINED_TABLE, CHECK_VIOLATION, FOREIGN_KEY_VIOLATION)
NEEDS_KEY = "a queue of policy key_strict_fifo takes no job without a key"
NO_INDEX = "the queue has a table of its own, made for another policy: it can't hold unique keys"


def row_of(job: PreparedJob, job_id: str, policy: str) -> dict[str, Any]:
    """Returns the job as `sql/produce/insert` reads it. Missing columns get the queue's values."""
    new = job.new
    row: dict[str, Any] = {"id": job_id, "data": orjson.Fragment(job.data)}
    row |= columns_of(options_of(new))
    if new.unique is not None and policy == "standard":
        # On a standard queue a key means nothing. pg-boss enforces policies by a column of the job, so this job gets
        # the policy that admits one job of a key until it has finished.
        row["policy"] = "exclusive"
    return row


class Adding:
    """Adds jobs to the queues of one store."""

    def __init__(self, store: Store, queues: Queues) -> None:
        self._store = store
        self._queues = queues

    async def add(self, name: str, jobs: Sequence[PreparedJob], transaction: Any = None) -> list[Added]:
        """Adds jobs in order, inside the caller's transaction if one is given."""
        queue = await self._queues.get(name)
        if not jobs:
            return []
        ids = new_ids(len(jobs))
        if queue.policy == "standard" and are_alike([job.new for job in jobs]):
            return await self._add_alike(queue, jobs, ids, transaction)
        return await self._add_rows(queue, jobs, ids, transaction)

    async def _add_rows(
        self, queue: QueueRow, jobs: Sequence[PreparedJob], ids: Sequence[str], transaction: Any
    ) -> list[Added]:
        rows = [row_of(job, job_id, queue.policy) for job, job_id in zip(jobs, ids, strict=True)]
        for row in rows:
            _check(queue, row)
        added: list[Added] = []
        for start in range(0, len(rows), _TOGETHER):
            added += await self.insert(queue, rows[start : start + _TOGETHER], transaction)
        return added

    async def _add_alike(
        self, queue: QueueRow, jobs: Sequence[PreparedJob], ids: Sequence[str], transaction: Any
    ) -> list[Added]:
        """Adds jobs that have the same options, which are stored without a check of keys."""
        given: dict[str, Any] = {}
        if not all(is_plain(job.new) for job in jobs):
            given = {"options": orjson.dumps(columns_of(options_of(replace(jobs[0].new, run_at=None)))), "starts": b""}
        statement = self._store.statements.get("insert_plain", queue.table, ["with_options"] if given else [])
        for start in range(0, len(jobs), _TOGETHER):
            together = slice(start, start + _TOGETHER)
            values = {
                "queue": text(queue.name),
                "ids": plain_list(ids[together]),
                "data": _BETWEEN.join([job.data for job in jobs[together]]),
                **self._store.channels,
                **given,
            }
            if given:
                times = [job.new.run_at for job in jobs[together]]
                values["starts"] = plain_list([None if time is None else time.timestamp() for time in times])
            if not await self._stored((statement, values), transaction):
                # The queue was deleted or has another policy or table: the general way reads its row again.
                done = [Added(job_id) for job_id in ids[:start]]
                return done + await self._add_rows(queue, jobs[start:], ids[start:], transaction)
        return [Added(job_id) for job_id in ids]

    async def _stored(self, call: Call, transaction: Any) -> bool:
        """Stores jobs. Returns False if nothing was stored and the transaction, if there is one, can go on."""
        try:
            if transaction is not None:
                [(found, _)] = await caller_transaction.run(transaction, call, self._store.where)
            else:
                [[(found, _)]] = await self._store.run([call])
        except Refused as error:
            if error.sqlstate not in (*_MOVED, UNIQUE_VIOLATION) or transaction is not None:
                raise
            return False
        return bool(found)

    async def insert(self, queue: QueueRow, rows: Sequence[Mapping[str, Any]], transaction: Any = None) -> list[Added]:
        """Stores rows. Returns one answer for each."""
        for row in rows:
            _check(queue, row)
        found = await self._insert_into(queue, rows, transaction)
        there = {job_id for job_id, _ in found}
        if None in there:
            self._queues.forget(queue.name)
            raise no_such_queue(queue.name)
        there |= await self._insert_into_next_slot(queue, rows, there, transaction)
        refused = [row for row in rows if row["id"].lower() not in there]
        holders = await self._holders(queue, refused, transaction) if refused else {}
        answers: list[Added] = []
        answered: set[str] = set()
        for row in rows:
            job_id = row["id"].lower()
            if job_id in answered:
                answers.append(Added(job_id, AddStatus.DUPLICATE))
            elif job_id in there:
                answered.add(job_id)
                answers.append(Added(job_id))
            elif job_id in holders:
                answers.append(holders[job_id])
            else:
                raise no_such_queue(queue.name)
        return answers

    async def _insert_into_next_slot(
        self, queue: QueueRow, rows: Sequence[Mapping[str, Any]], there: Collection[str], transaction: Any
    ) -> set[str]:
        """Stores the jobs that asked for the next time slot, if their own is taken. Returns the ids of those stored."""
        late = [
            {**row, "next_slot": True}
            for row in rows
            if row.get("singleton_next_slot") and row.get("singleton_seconds") and row["id"].lower() not in there
        ]
        return {job_id for job_id, _ in await self._insert_into(queue, late, transaction)} if late else set()

    async def _insert_into(self, queue: QueueRow, rows: Sequence[Mapping[str, Any]], transaction: Any) -> list[Row]:
        call = self.call(queue, rows)
        if transaction is not None:
            return await caller_transaction.run(transaction, call, self._store.where)
        try:
            [found] = await self._store.run([call])
            return found
        except Refused as error:
            if error.sqlstate not in _MOVED:
                raise
        # The queue was deleted, or deleted and made again with another table: read its row again.
        fresh = await self._queues.reread(queue.name)
        if fresh is None:
            return [(None, 0)]
        [found] = await self._store.run([self.call(fresh, rows)])
        return found

    def call(self, queue: QueueRow, rows: Sequence[Mapping[str, Any]]) -> Call:
        """Returns the statement that stores rows, with its values."""
        values = {"queue": text(queue.name), "jobs": orjson.dumps(rows), **self._store.channels}
        # Most jobs have nothing but data, and the server takes as long to read a missing column as a given one.
        plain = all(len(row) == 2 for row in rows)
        return self._store.statements.get("insert", queue.table, ("plain" if plain else "with_options",)), values

    async def _holders(self, queue: QueueRow, rows: Sequence[Mapping[str, Any]], transaction: Any) -> dict[str, Added]:
        """Returns an answer for each job that was not added, with the id of the job that holds its id, key or slot.
        That is empty if the other job is gone by now."""
        asked = [{key: value for key, value in row.items() if key != "data"} for row in rows]
        values = {"queue": text(queue.name), "jobs": orjson.dumps(asked)}
        call: Call = (self._store.statements.get("refusal", queue.table), values)
        if transaction is not None:
            found = await caller_transaction.run(transaction, call, self._store.where)
        else:
            [found] = await self._store.run([call])
        return {asked: Added(holder or "", AddStatus(status)) for asked, status, holder in found}


def _check(queue: QueueRow, row: Mapping[str, Any]) -> None:
    if queue.policy == "key_strict_fifo" and row.get("singleton_key") is None:
        raise InvalidOption("unique", None, NEEDS_KEY)
    if queue.partition and row.get("policy") is not None:
        raise InvalidOption("unique", row.get("singleton_key"), NO_INDEX)
