"""Figures of many queues: one statement for all that share a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobwire.backends.pgboss.connection.pipelined import Value
from jobwire.backends.pgboss.connection.rows import Row
from jobwire.backends.pgboss.connection.store import Store
from jobwire.backends.pgboss.connection.values import moment, number, text_list
from jobwire.backends.pgboss.operate.read import COUNTED
from jobwire.boundary import QueueFigures, Reading, Turnover
from jobwire.model import State

_STEP = 100
"""Queues per statement: the server may stop between two of them."""
_NEWEST = frozenset({State.COMPLETED, State.CANCELLED})
"""States that are counted among the newest finished jobs."""


async def figures(store: Store, queues: Sequence[str], most: int, since: datetime | None) -> Reading:
    """Returns figures of queues. A queue that does not exist has none of any."""
    if store.is_empty:
        return Reading([_nothing(name) for name in queues])
    await store.find_side()
    tables: dict[str, list[str]] = {}
    for name, table in await store.ask("queue_names", {"queues": text_list(queues)}, features=("only",)):
        tables.setdefault(table, []).append(name)
    found: dict[str, QueueFigures] = {}
    at: datetime | None = None
    for table, names in tables.items():
        for first in range(0, len(names), _STEP):
            values: dict[str, Value] = {"queues": text_list(names[first : first + _STEP]), "most": number(most + 1)}
            if since is not None:
                values["since"] = moment(since)
            rows = await store.ask("figures", values, table=table, features=("since",) if since is not None else ())
            for row in rows:
                figures = _figures(row, most, has_turnover=since is not None)
                found[figures.name] = figures
                # What happens while later statements run is counted by the next reading too, not by none.
                at = at or row[-1]
    return Reading([found.get(name) or _nothing(name) for name in queues], at)


def _figures(row: Row, most: int, *, has_turnover: bool) -> QueueFigures:
    name, *rest = row
    numbers, (looked_at, oldest, paused, added, completed, failed, _) = rest[: len(COUNTED)], rest[len(COUNTED) :]
    counts = dict(zip(COUNTED, numbers, strict=True))
    more = {state for state, jobs in counts.items() if jobs > most}
    if looked_at > most:
        more |= _NEWEST
    turnover = Turnover(added, completed, failed) if has_turnover else Turnover(0, 0, 0)
    capped = {state: min(jobs, most) for state, jobs in counts.items()}
    return QueueFigures(name, capped, oldest, paused, frozenset(more), turnover)


def _nothing(name: str) -> QueueFigures:
    return QueueFigures(name, dict.fromkeys(COUNTED, 0), None, paused=False, turnover=Turnover(0, 0, 0))
