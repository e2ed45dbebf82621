"""Removes finished jobs that are archived."""

from __future__ import annotations

from collections.abc import Sequence

from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.pipeline.stores.boundary import Purged, Stamp
from jobwire.pipeline.stores.pgboss.database import Database, sql
from jobwire.pipeline.stores.pgboss.table import FINGERPRINT, QueueTable


def purge(database: Database, table: QueueTable, queue: str, stamps: Sequence[Stamp]) -> Purged:
    """Removes in one statement: PostgreSQL checks a row that changes during it again once it has its lock."""
    good = [stamp for stamp in stamps if is_id(stamp.id)]
    query = database.fitted(
        "purge",
        job=table.name,
        fingerprint=FINGERPRINT,
        blocking=table.flag("blocking"),
        forgotten=sql("forgotten").format(side=database.layout.side) if table.has_side else "",
    )
    values = [queue, [one.id for one in good], [one.state for one in good], [one.fingerprint for one in good]]
    removed = {job_id for (job_id,) in database.ask(query, values)}
    return Purged(
        tuple(stamp.id for stamp in stamps if stamp.id.lower() in removed),
        tuple(stamp.id for stamp in stamps if stamp.id.lower() not in removed),
    )
