"""Publishes what a fleet did: `work` has a row for each worker, `work_runs` one for each run of a job."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from jobwire.errors import JobwireError
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.schemas import WORK
from jobwire.pipeline.spark.session import for_little
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.work.result import LOST, WORKING, WorkerReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PATIENCE = 60.0


def all_reports(last_seen: Sequence[WorkerReport], returned: Sequence[WorkerReport]) -> list[WorkerReport]:
    """Returns the reports that tasks have returned, and the last ones of workers that were lost before they could."""
    known = {one.worker for one in returned}
    ended = [one for one in last_seen if one.worker not in known]
    lost = [replace(one, outcome=LOST) if one.outcome == WORKING else one for one in ended]
    return sorted([*returned, *lost], key=lambda one: (one.task, one.started_at))


def reports_in(rows: DataFrame) -> list[WorkerReport]:
    """Returns the reports among the rows that tasks have returned."""
    found = rows.where("report IS NOT NULL").select("report").collect()
    return [WorkerReport(**json.loads(row["report"])) for row in found]


def publish(lake: Lake, reports: Sequence[WorkerReport], rows: DataFrame, *, run: str, store: str, queue: str) -> int:
    """Adds the rows of a run to both tables. Returns how many runs of jobs there are."""
    spark = rows.sparkSession
    fixed = {"store": F.lit(store), "queue": F.lit(queue), "run": F.lit(run)}
    day = {"day": utc_day(F.coalesce("started_at", F.current_timestamp()))}
    runs = rows.where("report IS NULL").withColumns(fixed).withColumns(day)
    made = [_work_row(store, queue, run, one) for one in reports]
    workers = spark.createDataFrame([tuple(row[name] for name in WORK.names) for row in made], WORK.spark)
    with for_little(spark, sum(one.runs for one in reports)):
        _patiently(lambda: _alone(lake, "work", workers, run))
        return _patiently(lambda: _alone(lake, "work_runs", runs, run))


def _alone(lake: Lake, table: str, rows: DataFrame, run: str) -> int:
    with lake.files.locked("work"):
        return lake.append(table, rows, run)


def _patiently(publication: Callable[[], int]) -> int:
    """Tries a publication again while another fleet publishes its own in the same lake."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return publication()
        except JobwireError:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)


def _work_row(store: str, queue: str, run: str, report: WorkerReport) -> dict[str, Any]:
    started = datetime.fromisoformat(report.started_at)
    return {
        **asdict(report),
        "store": store,
        "queue": queue,
        "run": run,
        "started_at": started,
        "ended_at": None if report.ended_at is None else datetime.fromisoformat(report.ended_at),
        "failures": json.dumps(report.failures, ensure_ascii=False),
        "day": started.date(),
    }
