"""Ingests without end: restarts each source's stream whenever it breaks."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from threading import Event
from typing import TYPE_CHECKING

from jobwire.checks import Seconds, seconds
from jobwire.errors import JobwireError
from jobwire.pipeline.history.ingest import (
    MAX_ROWS,
    IngestResult,
    SourceResult,
    keep_rules,
    offsets_of,
    record,
    rows_of,
    sentence,
)
from jobwire.pipeline.history.snapshots import AnySource
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.spark.streams import STREAMS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_SLOWEST = 60.0

_log = logging.getLogger("jobwire.pipeline")


def follow(
    spark: SparkSession,
    lake: Lake,
    sources: Sequence[AnySource],
    stop: Event,
    *,
    every: Seconds = 10.0,
    snapshot_every: Seconds = 300.0,
    max_rows: int = MAX_ROWS,
    progress: Progress = silent,
) -> IngestResult:
    """Ingests events as they come, and the jobs as they are from time to time, until `stop` is set.

    Waits without limit for a store that is unavailable.
    """
    pause, between = seconds("every", every, minimum=0.001), seconds("snapshot_every", snapshot_every)
    with lake.files.locked("ingest"), lake.run("ingest", continuous=True) as run:
        keep_rules(lake, sources)
        followers = [_Follower(spark, lake, source, pause, max_rows) for source in sources]
        next_snapshot = time.monotonic()
        rounds = 0
        while not stop.is_set():
            for follower in followers:
                follower.look()
            if time.monotonic() >= next_snapshot:
                rounds += 1
                for follower in followers:
                    follower.snapshot(f"{run.id}-{rounds}")
                next_snapshot = time.monotonic() + between
            progress("following", sum(follower.result.events for follower in followers), None)
            stop.wait(min(pause, 1.0))
        for follower in followers:
            follower.end()
        results = [follower.result for follower in followers]
        record(run, results)
        return IngestResult(run.id, results)


class _Follower:
    """Keeps one source's stream running."""

    def __init__(self, spark: SparkSession, lake: Lake, source: AnySource, every: float, max_rows: int) -> None:
        self._spark, self._lake, self._source = spark, lake, source
        self._every, self._max_rows = every, max_rows
        self._query: StreamingQuery | None = None
        self._seen = -1
        self._pause = 1.0
        self._again_at = 0.0
        self.result = SourceResult(source.store)

    def look(self) -> None:
        """Counts what came. Restarts the stream if it has ended and the pause is over."""
        if self._query is not None:
            self._count(self._query)
            if self._query.isActive:
                return
            self._broken(self._query.exception() or JobwireError("the stream ended"))
        elif time.monotonic() >= self._again_at:
            try:
                stream = self._source.events_stream(self._spark, self._lake, self._max_rows)
                if stream is None:
                    return
                self._query = STREAMS.start(stream.trigger(processingTime=f"{self._every} seconds"))
            except Exception as error:  # whatever it is, this source is tried again and the others continue
                self._broken(error)
            self._seen = -1

    def snapshot(self, run: str) -> None:
        try:
            self.result.jobs += self._source.take_snapshot(self._spark, self._lake, run)
        except Exception as error:  # whatever it is, the next snapshot may do better
            _log.warning("no snapshot of %s: %s; the next one is tried as usual", self._source.name, sentence(error))

    def end(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._count(self._query)

    def _count(self, query: StreamingQuery) -> None:
        for progress in query.recentProgress:
            rows = rows_of(progress)
            if progress["batchId"] > self._seen and rows:
                self._seen = progress["batchId"]
                self.result.events += rows
                self.result.offsets = offsets_of(progress)
                self.result.error = None
                self._pause = 1.0

    def _broken(self, error: Exception) -> None:
        self.result.error = sentence(error)
        _log.warning(
            "the stream of %s broke: %s; restarting it in %.0f s", self._source.name, self.result.error, self._pause
        )
        self._query, self._again_at = None, time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _SLOWEST)
