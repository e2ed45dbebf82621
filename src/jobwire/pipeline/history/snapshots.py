"""Snapshots of a source: what has not finished, and what has finished since the last one."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import functions as F  # noqa: N812

from jobwire.pipeline.lake.lake import Lake, folder_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

OVERLAP = timedelta(hours=1)
"""Finished jobs are read again for this long: their times are written by the clocks of workers, and at the beginning of
a transaction that others see at its end."""


class AnySource(Protocol):
    """Something that can be ingested, under the same name every time."""

    @property
    def store(self) -> str:
        """Its name in the tables."""
        ...

    @property
    def name(self) -> str:
        """Its name in the lake: what was read of it before is found by this name."""
        ...

    def look(self) -> str:
        """Returns a text that differs once there may be something new in it. Needs no Spark."""
        ...

    def events_stream(self, spark: SparkSession, lake: Lake, max_rows: int) -> DataStreamWriter | None:
        """Returns the stream of its events into bronze, not started yet, or None if it has no events."""
        ...

    def take_snapshot(self, spark: SparkSession, lake: Lake, run: str) -> int:
        """Reads its jobs as they are now into bronze. Returns how many were read."""
        ...


@contextmanager
def since_last_snapshot(lake: Lake, source: str, option: str) -> Generator[tuple[datetime, Mapping[str, str]]]:
    """Yields the time, and the option of the data source by which only what is new since the last snapshot is read. The
    time counts as that of the last snapshot once the block has ended without an error."""
    mark = f"checkpoints/snapshots/{folder_of(source)}.json"
    before: Mapping[str, Any] | None = lake.files.read(mark)
    now = datetime.now(UTC)
    begin = {} if before is None else {option: (datetime.fromisoformat(before["until"]) - OVERLAP).isoformat()}
    yield now, begin
    lake.files.write(mark, {"until": now.isoformat()})


def seen(rows: DataFrame, at: datetime, run: str) -> DataFrame:
    """Returns the rows with the time and the run in which they were read."""
    return rows.withColumn("seen_at", F.lit(at)).withColumn("run", F.lit(run))
