"""Frames written down in tests: rows as dicts that name only what matters, times as minutes after one noon."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from jobwire.pipeline.lake.schemas import (
    ATTEMPTS,
    BRONZE_EVENTS,
    SILVER_EVENTS,
    SILVER_JOBS,
    SNAPSHOTS,
    Columns,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BULLMQ = {"store": "bullmq+redis://a", "queue": "emails"}
PGBOSS = {"store": "pgboss+postgresql://a", "queue": "emails"}


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def frame(spark: SparkSession, columns: Columns, rows: Iterable[dict[str, Any]]) -> DataFrame:
    """Rows as a frame; a column that a row does not name is null, and one that no table has is an error."""
    given = [*rows]
    for row in given:
        if unknown := set(row) - set(columns.names):
            raise KeyError(f"no such columns: {unknown}")
    return spark.createDataFrame([tuple(row.get(name) for name in columns.names) for row in given], columns.spark)


def event(number: int, kind: str, minute: float, job: str | None = "7", **data: Any) -> dict[str, Any]:
    """A bronze event of BullMQ, its id made as the stream makes it."""
    return {
        **BULLMQ,
        "id": f"{ms(at(minute))}-{number}",
        "kind": kind,
        "job_id": job,
        "at": at(minute),
        "data": json.dumps(data),
        "ingested_at": at(minute + 1),
        "day": at(minute).date(),
    }


def bronze_events(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    return frame(spark, BRONZE_EVENTS, rows)


def silver_event(number: int, kind: str, minute: float, job: str | None = "7", **more: Any) -> dict[str, Any]:
    """A silver event; `worker`, `error`, `native_kind` and what else is a column may be given, the rest is data."""
    columns = {name: more.pop(name) for name in [*more] if name in SILVER_EVENTS.names}
    return {
        **BULLMQ,
        "id": f"{ms(at(minute))}-{number}",
        "kind": kind,
        "native_kind": kind,
        "job_id": job,
        "happened_at": at(minute),
        "data": json.dumps(more),
        "day": at(minute).date(),
        **columns,
    }


def silver_events(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    return frame(spark, SILVER_EVENTS, rows)


def snapshot(minute: float, job: str = "7", **columns: Any) -> dict[str, Any]:
    """A job as it was seen in that minute."""
    return {**BULLMQ, "id": job, "name": "welcome", "state": "waiting", "seen_at": at(minute), "run": "r1", **columns}


def snapshots(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    return frame(spark, SNAPSHOTS, rows)


def job(job: str = "7", **columns: Any) -> dict[str, Any]:
    """A silver job, created at noon."""
    return {
        **BULLMQ,
        "id": job,
        "name": "welcome",
        "state": "waiting",
        "created_at": NOON,
        "day": NOON.date(),
        **columns,
    }


def jobs(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    return frame(spark, SILVER_JOBS, rows)


def attempt(started: float | None, ended: float | None, **columns: Any) -> dict[str, Any]:
    """A silver attempt from minute to minute."""
    known = started if started is not None else ended
    assert known is not None
    return {
        **BULLMQ,
        "job_id": "7",
        "name": "welcome",
        "attempt": 1,
        "started_at": None if started is None else at(started),
        "ended_at": None if ended is None else at(ended),
        "outcome": "open" if ended is None else "completed",
        "day": at(known).date(),
        **columns,
    }


def attempts(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    return frame(spark, ATTEMPTS, rows)


def values(rows: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    """The rows' values of these columns, sorted, for a plain comparison. Times are aware."""

    def aware(value: Any) -> Any:
        return value.astimezone(UTC) if isinstance(value, datetime) else value

    found = [tuple(aware(value) for value in row) for row in rows.select(*names).collect()]
    return sorted(found, key=lambda row: tuple((value is None, str(type(value)), value) for value in row))


def only(rows: DataFrame, *names: str) -> tuple[Any, ...]:
    """The values of the one row that there is."""
    found = values(rows, *names)
    assert len(found) == 1, found
    return found[0]


def assert_rows(actual: DataFrame, columns: Columns, *expected: dict[str, Any]) -> None:
    assertDataFrameEqual(actual, frame(actual.sparkSession, columns, expected))
