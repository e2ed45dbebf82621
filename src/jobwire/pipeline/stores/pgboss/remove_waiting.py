"""Removes jobs that wait, for a move that has verified their copies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from jobwire.backends.pgboss.produce.ids import is_id
from jobwire.boundary import Acted
from jobwire.pipeline.stores.pgboss.database import Database, sql
from jobwire.pipeline.stores.pgboss.table import QueueTable

_TOGETHER = 2_000


def remove_waiting(
    database: Database,
    table: QueueTable,
    queue: str,
    ids: Sequence[str],
    present: Callable[[Sequence[str]], Collection[str]],
) -> list[Acted]:
    """Removes in one statement: PostgreSQL checks a row that changes during it again once it has its lock. `present`
    returns those of some ids that the queue holds."""
    query = database.fitted(
        "remove_waiting",
        job=table.name,
        blocked=table.flag("blocked"),
        forgotten=sql("forgotten").format(side=database.layout.side) if table.has_side else "",
    )
    acted: list[Acted] = []
    for start in range(0, len(ids), _TOGETHER):
        some = ids[start : start + _TOGETHER]
        gone = {job_id for (job_id,) in database.ask(query, [queue, [one for one in some if is_id(one)]])}
        left = [one for one in some if one.lower() not in gone]
        held = set(present(left)) if left else ()
        for one in some:
            removed = one.lower() in gone
            acted.append(Acted.DONE if removed else Acted.WRONG_STATE if one in held else Acted.NOT_FOUND)
    return acted
