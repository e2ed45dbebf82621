"""Ingests queues into bronze: their events as streams, and their jobs as they are now. A campaigns' database has no
events, and its tables are read as they are now. A source without news is left alone: see news.py.

Each store is a source with a stream and folders of its own, for all of its queues. A stream's offsets are in its
checkpoint, so an ingest that was killed continues where it was. A batch is published as a whole, and once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from jobwire.pipeline.history.news import Look, has_news, last_look, record_look, take_look
from jobwire.pipeline.history.snapshots import AnySource
from jobwire.pipeline.history.sources import Source, find_sources
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.run_log import Run
from jobwire.pipeline.privacy.record import record_rules
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.spark.session import session_of
from jobwire.pipeline.spark.streams import STREAMS
from jobwire.redact import redact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobwire.pipeline.spark.session import AnySession

__all__ = ["MAX_ROWS", "IngestResult", "Source", "SourceResult", "find_sources", "ingest"]

MAX_ROWS = 200_000
_AT_ONCE, _LOOKS_AT_ONCE = 2, 16
_TRIES = 3
_NOT_INGESTED = "%s was not ingested: %s; the other sources continue"

_log = logging.getLogger("jobwire.pipeline")


@dataclass
class SourceResult:
    """The numbers of one ingest from one source."""

    store: str
    events: int = 0
    jobs: int = 0
    offsets: Any = None
    """The number of jobs by queue."""
    error: str | None = None
    unchanged: bool = False
    """There was nothing new, and nothing was read."""


@dataclass(frozen=True)
class IngestResult:
    run: str
    sources: Sequence[SourceResult] = field(default_factory=list[SourceResult])

    @property
    def good(self) -> bool:
        return not any(source.error for source in self.sources)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "good": self.good}


def ingest(
    spark: AnySession,
    lake: Lake,
    sources: Sequence[AnySource],
    *,
    max_rows: int = MAX_ROWS,
    progress: Progress = silent,
) -> IngestResult:
    """Ingests what is there now. A source that fails is reported; the others continue. Spark is not used if no source
    has anything new, nor for a store that can't be reached."""
    with lake.files.locked("ingest"), lake.run("ingest") as run, ThreadPoolExecutor(_AT_ONCE) as threads:
        keep_rules(lake, sources)
        progress("looking", 0, len(sources))
        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as looking:
            looks = list(looking.map(take_look, sources))
        steps = [_Step(source, now, last_look(lake, source)) for source, now in zip(sources, looks, strict=True)]
        new = [step for step in steps if step.has_news]
        if new:
            session, done = session_of(spark), count(1)
            progress("ingesting", 0, len(new))

            def one(step: _Step) -> None:
                _ingest_one(session, lake, step, run, max_rows)
                progress("ingesting", next(done), len(new))

            for _ in threads.map(one, new):
                pass
        results = [step.result for step in steps]
        record(run, results)
        return IngestResult(run.id, results)


def keep_rules(lake: Lake, sources: Sequence[AnySource]) -> None:
    """Records the rules of privacy of the sources, or refuses those that leave out an earlier one."""
    for source in sources:
        if isinstance(source, Source):
            record_rules(lake, source.privacy)


class _Step:
    """One source of an ingest."""

    def __init__(self, source: AnySource, look: Look, last: Look | None) -> None:
        self.source, self.look = source, look
        self.has_news = look.failure is None and has_news(look, last)
        offsets = None if last is None else last.offsets
        self.result = SourceResult(source.store, offsets=offsets, unchanged=look.failure is None and not self.has_news)
        if look.failure is not None:
            self.result.error = sentence(look.failure)
            _log.warning(_NOT_INGESTED, source.name, self.result.error)


def _ingest_one(spark: SparkSession, lake: Lake, step: _Step, run: Run, max_rows: int) -> None:
    source, result = step.source, step.result
    for tries_left in reversed(range(_TRIES)):
        try:
            _take_in(spark, lake, source, run=run, max_rows=max_rows, result=result)
        except Exception as error:  # the failure of one source is in the result and does not stop the others
            # Any other error is Spark's: a machine without memory loses Python processes before they can report one.
            # The checkpoint makes another attempt harmless.
            result.error = sentence(error)
            _log.warning(_NOT_INGESTED, source.name, result.error)
            if tries_left and "jobwire.errors." not in str(error):
                continue
        else:
            result.error = None
            record_look(lake, source, step.look, result.offsets)
        return


def _take_in(
    spark: SparkSession, lake: Lake, source: AnySource, *, run: Run, max_rows: int, result: SourceResult
) -> None:
    stream = source.events_stream(spark, lake, max_rows)
    if stream is not None:
        query = STREAMS.start(stream.trigger(availableNow=True))
        try:
            query.awaitTermination()
        finally:
            query.stop()
            progress = query.recentProgress
            result.events += sum(rows_of(one) for one in progress)
            result.offsets = offsets_of(progress[-1]) if progress else result.offsets
    result.jobs = source.take_snapshot(spark, lake, run.id)


def record(run: Run, results: Sequence[SourceResult]) -> None:
    """Records what was ingested from the sources."""
    run.rows_in = run.rows_out = sum(result.events + result.jobs for result in results)
    run.offsets.update({result.store: result.offsets for result in results})
    run.note(unchanged=[result.store for result in results if result.unchanged])
    run.fault = "; ".join(f"{result.store}: {result.error}" for result in results if result.error) or None


def rows_of(progress: Any) -> int:
    """Returns how many rows a batch of a stream read, summed over its sources: Connect leaves out the sum."""
    return sum(source["numInputRows"] for source in progress["sources"])


def offsets_of(progress: Any) -> Any:
    """Returns how far a stream has come, by its own report."""
    end = progress["sources"][0]["endOffset"]
    return json.loads(end) if isinstance(end, str) else end


def sentence(error: Exception) -> str:
    """Returns the error without Spark's stack and without passwords: the last line that a Python process wrote."""
    lines = [line.strip() for line in redact(str(error)).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("jobwire.")]
    return (own[-1].partition(": ")[2] if own else lines[0] if lines else type(error).__name__)[:500]
