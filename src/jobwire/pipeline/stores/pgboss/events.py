"""Derives events from pg-boss's rows. There is no log of events: a row holds when its job was created, when its last
run began and how that ended, each by the database's clock. Of earlier runs there is what workers remember, if they do.

These times are those of the beginning of the writing transaction, while the row becomes visible at its end. An offset
is therefore two times, in microseconds: events up to `at` were read, and every transaction that can still write an
event of `from` or earlier had ended by then. The next batch begins at `from`. Events that it reads a second time have
the same ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from jobwire.pipeline.lake.schemas import EVENTS
from jobwire.pipeline.stores.boundary import Offset
from jobwire.pipeline.stores.pgboss import partitions
from jobwire.pipeline.stores.pgboss.database import Database
from jobwire.pipeline.stores.pgboss.partitions import Partition
from jobwire.pipeline.stores.pgboss.table import ERROR, RETRIED, QueueTable

OVERLAP_SECONDS = 600
"""The time by which a batch begins earlier while a transaction is open whose beginning this user may not see, or on a
standby. An offset has its own, as `overlap`. The role `pg_read_all_stats` makes it unnecessary."""
_MARGIN = 1_000_000
# A session gets the time of its transaction a moment before others can see it in pg_stat_activity.
_SLICE = 100_000
_MOST_SLICES = 32
_ASKED = EVENTS.without(["store", "queue", "malformed"])

_ALL = Partition()
FIRST: Offset = {"at": 0, "from": 0, "overlap": OVERLAP_SECONDS}


@dataclass(frozen=True)
class EventPartition:
    """Events after `since` up to and with `until`, of the jobs in a range of ids."""

    since: int
    until: int
    ids: Partition = _ALL


class Now:
    """The time of the database, and the transactions that are open. It may be some seconds old when a queue is read:
    what happened since is read the next time.

    The beginning of a prepared transaction can't be seen, but it was open, or had not begun, at every earlier read. It
    is looked for after the open ones: a transaction that is prepared in between is seen as one or the other.
    """

    def __init__(self, database: Database) -> None:
        [(at, low, hidden)] = database.ask(database.fitted("moment"))
        self.at = int(at)
        self.low = int(low) - _MARGIN - 1  # the bound itself is left out
        self.hidden = bool(hidden)
        self.prepared = frozenset(oid for (oid,) in database.ask(database.fitted("prepared")))
        """The tables that prepared transactions have written to."""


def latest(
    database: Database, table: QueueTable, queue: str, start: Offset, max_rows: int | None, *, now: Now
) -> Offset:
    at = max(now.at, start["at"])  # a clock may be set back
    low = now.low
    if now.hidden:
        low = min(low, at - int(start.get("overlap", OVERLAP_SECONDS)) * 1_000_000)
    low = start["from"] if table.oid in now.prepared else max(low, start["from"])
    news = database.fitted(
        "news", job=table.name, retried=RETRIED, **{"from": _time(start["from"]), "until": _time(at)}
    )
    if not database.ask(news, [queue])[0][0]:
        return start
    if max_rows is not None:
        nth = database.fitted("nth", job=table.name, **{"from": _time(start["at"])})
        bounds = [bound for bound in database.ask(nth, [queue, max_rows // 3])[0] if bound is not None]
        at = min(at, *bounds) if bounds else at
    return {**start, "at": at, "from": min(low, at)}


def plan(database: Database, table: QueueTable, queue: str, start: Offset, end: Offset) -> list[EventPartition]:
    whole = EventPartition(start["from"], end["at"])
    since, until = _time(whole.since), _time(whole.until)
    condition = (
        f"j.name = {database.literal(queue)} AND (j.created_on > {since} AND j.created_on <= {until} "
        f"OR j.completed_on > {since} AND j.completed_on <= {until})"
    )
    count = f"SELECT count(*) FROM (SELECT FROM {table.name} j WHERE {condition} LIMIT {_SLICE * _MOST_SLICES}) c"  # noqa: S608 checked
    parts = database.ask(count)[0][0] // _SLICE
    if parts < 2:
        return [whole]
    return [EventPartition(whole.since, whole.until, ids) for ids in partitions.plan(database, table, condition, parts)]


def read(
    database: Database, table: QueueTable, part: EventPartition, store: str, queue: str
) -> Iterator[pa.RecordBatch]:
    where = {
        "condition": f"j.name = {database.literal(queue)}{part.ids.condition}",
        "from": _time(part.since),
        "until": _time(part.until),
    }
    remembered = database.fitted("remembered", **where) if table.remembers else ""
    query = database.fitted("events", job=table.name, error=ERROR, retried=RETRIED, remembered=remembered, **where)
    for batch in database.batches(query, _ASKED.arrow):
        constants = [pa.repeat(text, batch.num_rows) for text in (store, queue)]
        yield pa.record_batch([*constants, *batch.columns, pa.nulls(batch.num_rows, pa.string())], schema=EVENTS.arrow)


def _time(microseconds: int) -> str:
    """Returns exact microseconds: a number of seconds would go through floating point."""
    return f"('epoch'::timestamptz + {microseconds} * interval '1 microsecond')"
