"""Makes a report from the lake's gold tables. Needs no Spark where the tables are Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pandas as pd

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.lake import SUMMARIES, Lake
from jobwire.pipeline.lake.pointers import read_table
from jobwire.pipeline.lake.run_log import read_runs
from jobwire.pipeline.lake.schemas import RUNS
from jobwire.pipeline.lake.tables import CAMPAIGNS_IN_ONE, columns_of
from jobwire.pipeline.report import Period, write_report
from jobwire.pipeline.targets.from_lake import Picture, picture, read_beginnings, read_unfinished
from jobwire.pipeline.targets.hours import QueueKey
from jobwire.pipeline.targets.outlook import outlook
from jobwire.pipeline.targets.target import NO_TARGETS, Targets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIMES = ("hour", "day")
_HOURLY = ("throughput_hourly", "campaign_hourly")
"""The tables that decide which period a report covers, if the caller names none."""


@dataclass(frozen=True)
class ReportResult:
    path: str
    since: str
    until: str
    rows: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def report(
    lake: Lake,
    folder: Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    title: str = "Job queues",
    png: bool = False,
    targets: Targets = NO_TARGETS,
    spark: SparkSession | None = None,
) -> ReportResult:
    """Writes the report of a period, or of all that the lake has, into the folder. The session is for other formats.

    Rates are over the time that was observed: from the first thing that the lake has to the beginning of the last
    ingest. A report up to the present has sections about targets, changes and what comes.
    """
    names = [*SUMMARIES, *(name for name in CAMPAIGNS_IN_ONE if lake.pointer(name) is not None)]
    tables = {name.removeprefix("gold/"): _frame(lake, name, spark) for name in names if name.startswith("gold/")}
    hours = [hour for name in _HOURLY if name in tables for hour in tables[name]["hour"]]
    if not hours:
        raise JobwireError(f"the lake at {lake.root} has nothing to report yet: run `jobwire pipeline run` first")
    log = read_runs(lake.root)
    seen = _observed(lake, tables, log)
    start = since or min(hours).to_pydatetime()
    end = until or max(hours).to_pydatetime() + timedelta(hours=1)
    if end <= start:
        raise JobwireError(f"a report from {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} covers no time")
    tables = {name: _within(frame, start, end) for name, frame in tables.items()}
    tables["runs"] = pd.DataFrame(log, columns=pd.Index(RUNS.names))
    present = None if seen is None or until is not None else outlook(seen.picture, targets, seen.began)
    period = Period(start, end) if seen is None else seen.part_of(start, end)
    with lake.run("report") as run:
        path = write_report(tables, folder, title=title, period=period, png=png, outlook=present)
        run.rows_in = sum(len(frame) for frame in tables.values())
        run.note(path=str(path), until=end.isoformat())
    return ReportResult(
        str(path),
        period.start.isoformat(),
        period.end.isoformat(),
        {name: len(frame) for name, frame in tables.items()},
    )


@dataclass(frozen=True)
class _Observed:
    picture: Picture
    began: Mapping[QueueKey, datetime]

    def part_of(self, start: datetime, end: datetime) -> Period:
        """Returns the part of a period that was observed, or all of it if none was."""
        first = min(self.began.values(), default=start)
        begin, until = max(start, first), min(end, self.picture.until)
        return Period(begin, until) if begin < until else Period(start, end)


def _observed(lake: Lake, tables: Mapping[str, pd.DataFrame], log: Sequence[Mapping[str, Any]]) -> _Observed | None:
    """Returns the queues as far as they were observed, or None for a lake without queues."""
    if tables["throughput_hourly"].empty:
        return None
    plain = lake.format == "parquet"
    unfinished = read_unfinished(lake) if plain else pd.DataFrame()
    found = picture(tables["throughput_hourly"], tables["latency_hourly"], unfinished, log)
    return _Observed(found, read_beginnings(lake, found.queues) if plain else {})


def since_last(root: str) -> datetime | None:
    """Returns where a report begins that continues the last one: with the last hour of that one, which may have had
    more to come. None if there was none."""
    done = [run for run in read_runs(root) if (run["command"], run["outcome"]) == ("report", "ok")]
    until = next((found for run in reversed(done) if (found := orjson.loads(run["notes"]).get("until"))), None)
    return None if until is None else datetime.fromisoformat(until) - timedelta(hours=1)


def _frame(lake: Lake, name: str, spark: SparkSession | None) -> pd.DataFrame:
    if lake.pointer(name) is None:
        return pd.DataFrame(columns_of(name).arrow.empty_table().to_pandas())
    if lake.format == "parquet":
        return pd.DataFrame(read_table(lake.root, name).to_pandas())
    if spark is None:
        raise JobwireError(f"the lake at {lake.root} is kept as {lake.format}, which only Spark reads")
    frame: pd.DataFrame = lake.table(spark, name).toPandas()
    for column in frame.select_dtypes("datetime").columns:
        frame[column] = frame[column].dt.tz_localize(UTC)
    return frame


def _within(frame: pd.DataFrame, start: datetime, end: datetime) -> pd.DataFrame:
    for column in _TIMES:
        if column in frame.columns and len(frame):
            at = pd.to_datetime(frame[column], utc=True)
            begin = start if column == "hour" else start.replace(hour=0, minute=0, second=0, microsecond=0)
            return frame.loc[(at >= begin) & (at < end)].reset_index(drop=True)
    return frame
