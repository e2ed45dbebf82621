"""Reads from a lake what targets, forecasts and changes are computed from. Needs no Spark where tables are Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
import pandas as pd
import pyarrow.compute as pc

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.lake.tables import columns_of
from jobwire.pipeline.targets.backlog import COLUMNS, STATES, Backlog, backlogs
from jobwire.pipeline.targets.hours import HOUR, Hours, QueueKey, hours_of


@dataclass(frozen=True)
class Picture:
    """The queues of a lake, as far as it has been observed."""

    queues: Sequence[Hours]
    backlogs: Mapping[QueueKey, Backlog]
    until: datetime
    """The time at which the stores were last read."""
    read_at: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """The same for each store of which it is known."""


def read_picture(lake: Lake) -> Picture:
    """Returns the queues of a lake. Raises JobwireError if nothing was built yet."""
    if lake.pointer("gold/throughput_hourly") is None:
        raise JobwireError(f"the lake at {lake.root} has no figures yet: run `jobwire pipeline run` first")
    throughput, latency = (_frame(lake, name) for name in ("gold/throughput_hourly", "gold/latency_hourly"))
    return picture(throughput, latency, read_unfinished(lake), read_runs(lake.root))


def picture(throughput: Any, latency: Any, unfinished: Any, runs: Sequence[Mapping[str, Any]]) -> Picture:
    """Returns the queues from frames of gold, of the jobs that have not finished, and from the run log."""
    queues = hours_of(throughput, latency)
    held = backlogs(unfinished)
    seen = [backlog.seen_at for backlog in held.values()]
    return Picture(queues, held, observed_until(queues, runs, seen), _readings(queues, runs, held.values()))


def ingests(runs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the ingests that read all of their stores."""
    return [run for run in runs if run["command"] == "ingest" and run["outcome"] == "ok"]


def observed_until(queues: Sequence[Hours], runs: Sequence[Mapping[str, Any]], seen: Sequence[datetime]) -> datetime:
    """Returns when the stores were last read: the beginning of the last ingest. A lake without a run log was observed
    up to the end of its last hour."""
    last_hours = [max(hours.hours) for hours in queues]
    newest = max([*(run["started_at"] for run in ingests(runs)), *seen, *last_hours])
    return newest if newest not in last_hours else newest + HOUR


def _readings(
    queues: Sequence[Hours], runs: Sequence[Mapping[str, Any]], held: Iterable[Backlog]
) -> dict[str, datetime]:
    """Returns the last time at which anything was read from each store."""
    read = [
        *((hours.key.store, max(hours.hours)) for hours in queues),
        *((backlog.key.store, backlog.seen_at) for backlog in held),
        *((store, run["started_at"]) for run in ingests(runs) for store in orjson.loads(run["offsets"]) or ()),
    ]
    found: dict[str, datetime] = {}
    for store, at in read:
        found[store] = max(at, found.get(store, at))
    return found


def read_beginnings(lake: Lake, queues: Sequence[Hours]) -> dict[QueueKey, datetime]:
    """Returns when the first thing happened that the lake has of each queue. Reads the first days of queues only."""
    first = {hours.key: hours.first for hours in queues}
    found: dict[QueueKey, datetime] = {}
    for table, column in (("silver/jobs", "created_at"), ("silver/attempts", "started_at")):
        pointer = lake.pointer(table)
        days = sorted({at.date().isoformat() for at in first.values()} & set(pointer.parts)) if pointer else []
        schema = columns_of(table).arrow
        for day in days if pointer else ():
            folder = f"{table}/{pointer.parts[day].folder}" if pointer else ""
            rows = lake.files.table(lake.files.parquet(folder), schema, ["store", "queue", column]).to_pandas()
            for (store, queue), times in rows.groupby(["store", "queue"])[column]:
                key = QueueKey(store, queue)
                within = times[times >= first[key]] if key in first else times.head(0)
                if within.notna().any():
                    found[key] = min(within.min().to_pydatetime(), found.get(key, datetime.max.replace(tzinfo=UTC)))
    return {key: at for key, at in found.items() if at < first[key] + HOUR}


def read_unfinished(lake: Lake) -> Any:
    """Returns the rows of `silver/jobs` that have not finished, as a frame."""
    if lake.pointer("silver/jobs") is None:
        return pd.DataFrame(columns=pd.Index(COLUMNS))
    unfinished = pc.field("state").isin(STATES)
    return read_table(lake.root, "silver/jobs", columns=COLUMNS, where=unfinished).to_pandas()


def _frame(lake: Lake, name: str) -> Any:
    return read_table(lake.root, name).to_pandas() if lake.pointer(name) is not None else pd.DataFrame()
