"""Implements the pipeline's boundary for one pg-boss queue."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.boundary import Acted
from jobwire.pipeline.stores.boundary import Offset, Purged, Stamp, Wanted
from jobwire.pipeline.stores.pgboss import events, finished, jobs, partitions, purge
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.events import EventPartition, Now
from jobwire.pipeline.stores.pgboss.partitions import Partition
from jobwire.pipeline.stores.pgboss.remove_waiting import remove_waiting
from jobwire.pipeline.stores.pgboss.table import QueueTable, find_tables, table_of
from jobwire.urls import Address


class PgBossStore:
    """Implements QueueStore. A queue that does not exist is an error at the first use."""

    def __init__(
        self,
        database: Database,
        queue: str,
        name: str,
        tables: dict[str, QueueTable] | None = None,
        now: Now | None = None,
    ) -> None:
        self._database = database
        self._queue = queue
        self._name = name
        self._tables: dict[str, QueueTable] = {} if tables is None else tables
        self._now = now

    @property
    def _table(self) -> QueueTable:
        return table_of(self._database, self._queue, self._tables)

    def plan_jobs(self, wanted: Wanted, parts: int) -> Sequence[Partition]:
        table = self._table
        if wanted.names is not None and self._queue not in wanted.names:
            return []
        return partitions.plan(
            self._database, table, partitions.condition_of(self._database, [self._queue], wanted), parts
        )

    def read_jobs(self, part: Partition, wanted: Wanted) -> Iterator[pa.RecordBatch]:
        condition = partitions.condition_of(self._database, [self._queue], wanted) + part.condition
        return jobs.read(self._database, self._table, condition, self._name, self._queue)

    def first_offset(self) -> Offset:
        return events.FIRST

    def latest_offset(self, start: Offset, max_rows: int | None) -> Offset:
        now = self._now or Now(self._database)
        return events.latest(self._database, self._table, self._queue, start, max_rows, now=now)

    def passed(self, offset: Offset, target: Offset) -> bool:
        return bool(offset["at"] >= target["at"])

    def plan_events(self, start: Offset, end: Offset) -> Sequence[EventPartition]:
        return events.plan(self._database, self._table, self._queue, start, end)

    def read_events(self, part: EventPartition) -> Iterator[pa.RecordBatch]:
        return events.read(self._database, self._table, part, self._name, self._queue)

    def present(self, ids: Sequence[str]) -> Collection[str]:
        query = f"SELECT j.id::text FROM {self._table.name} j WHERE j.name = $1 AND j.id = ANY ($2::uuid[])"  # noqa: S608
        known = [one for one in ids if is_id(one)]
        found = {job_id for (job_id,) in self._database.ask(query, [self._queue, known])}
        return {one for one in known if one.lower() in found}

    def payloads(self, ids: Sequence[str]) -> Mapping[str, str]:
        query = f"SELECT j.id::text, coalesce(j.data::text, 'null') FROM {self._table.name} j WHERE j.name = $1 AND j.id = ANY ($2::uuid[])"  # noqa: S608, E501
        known = [one for one in ids if is_id(one)]
        found: dict[str, str] = dict(self._database.ask(query, [self._queue, known]))
        return {one: found[one.lower()] for one in known if one.lower() in found}

    def purge(self, stamps: Sequence[Stamp]) -> Purged:
        return purge.purge(self._database, self._table, self._queue, stamps)

    def remove_waiting(self, ids: Sequence[str]) -> Sequence[Acted]:
        return remove_waiting(self._database, self._table, self._queue, ids, self.present)

    def put_finished(self, jobs: pa.RecordBatch) -> int:
        return finished.put_finished(self._database, self._table, self._queue, jobs)

    def close(self) -> None:
        self._database.close()


class PgBossConnection:
    """Implements StoreConnection."""

    merges = False

    def __init__(self, address: Address, name: str) -> None:
        self._database = Database(address)
        self._name = name
        self._tables: dict[str, QueueTable] = {}
        self._now: Now | None = None

    def queue(self, queues: Sequence[str]) -> PgBossStore:
        [queue] = queues
        return PgBossStore(self._database, queue, self._name, self._tables, self._now)

    def expect(self, queues: Sequence[str]) -> None:
        """Finds the tables of the queues, and takes the time once for all of them."""
        self._tables |= find_tables(self._database, queues)
        self._now = Now(self._database)

    def sizes(self, queues: Sequence[str], wanted: Wanted) -> Mapping[str, int]:
        self.expect(queues)
        for queue in queues:
            table_of(self._database, queue, self._tables)  # raises StoreRefused if it does not exist
        condition = partitions.condition_of(self._database, queues, wanted)
        rows = self._database.ask(self._database.fitted("sizes", condition=condition))
        return {str(name): int(count) for name, count in rows}

    def close(self) -> None:
        self._database.close()


def connect(address: Address, name: str) -> PgBossConnection:
    return PgBossConnection(address, name)


def look(address: Address, queues: Sequence[str]) -> list[tuple[object, ...]]:
    """Returns figures of each queue that differ after every change of a row."""
    with closing(Database(address)) as database:
        return database.ask(database.fitted("look"), [list(queues)])


def list_queues(address: Address) -> Sequence[str]:
    database = Database(address)
    try:
        return [str(name) for (name,) in database.ask(database.fitted("queues"))]
    finally:
        database.close()
