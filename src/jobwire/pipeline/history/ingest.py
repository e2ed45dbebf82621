"""Ingests queues into bronze: their events as streams, and their jobs as they are now. A campaigns' database has no
events, and its tables are read as they are now. A source without news is left alone: see news.py.

Each store is a source with a stream and folders of its own, for all of its queues. A stream's offsets are in its
checkpoint, so an ingest that was killed continues where it was. A batch is published as a whole, and once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from jobwire import urls
from jobwire.campaigns.addresses import is_database
from jobwire.errors import InvalidOption
from jobwire.pipeline.history.campaign_source import find_database
from jobwire.pipeline.history.news import Look, has_news, last_look, record_look, take_look
from jobwire.pipeline.history.snapshots import AnySource, seen, since_last_snapshot
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.run_log import Run
from jobwire.pipeline.spark.progress import Progress, silent
from jobwire.pipeline.spark.session import session_of
from jobwire.pipeline.spark.streams import STREAMS
from jobwire.pipeline.spark.utc import utc_day
from jobwire.pipeline.stores.address import reached, store_name
from jobwire.pipeline.stores.boundary import list_queues, look
from jobwire.redact import redact

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from jobwire.pipeline.spark.session import AnySession

MAX_ROWS = 200_000
_AT_ONCE = 2
_TRIES = 3

_log = logging.getLogger("jobwire.pipeline")


@dataclass(frozen=True)
class Source:
    """A store of queues. `url` is the one by which Spark's processes reach it, `store` its name in the tables, `queues`
    those that are wanted. None: all of them, including those that are created later."""

    url: str
    store: str
    queues: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Returns a name that is the same for the same queues of the same store. Their stream continues by it."""
        return self.store if self.queues is None else f"{self.store} {json.dumps(sorted(self.queues))}"

    @property
    def options(self) -> dict[str, str]:
        chosen = {} if self.queues is None else {"queues": json.dumps(self.queues)}
        return {"url": self.url, "store": self.store, **chosen}

    def look(self) -> str:
        """Returns a text that differs once a job was added, was removed or changed its state."""
        address = urls.parse(self.url)
        return look(address, list_queues(address) if self.queues is None else self.queues)

    def events_stream(self, spark: SparkSession, lake: Lake, max_rows: int) -> DataStreamWriter:
        stream = (
            spark.readStream.format("jobwire")
            .options(**self.options, table="events", max_rows=str(max_rows))
            .load()
            .withColumn("ingested_at", F.current_timestamp())
            .withColumn("day", utc_day(F.coalesce("at", "ingested_at")))
        )
        return lake.events_writer(stream, self.name)

    def take_snapshot(self, spark: SparkSession, lake: Lake, run: str) -> int:
        """Reads the jobs that have not finished, and those that have finished since the last snapshot."""
        with since_last_snapshot(lake, self.name, "finished_from") as (now, since):
            jobs: DataFrame = spark.read.format("jobwire").options(**self.options, **since).load()
            return lake.add_snapshot(self.name, seen(jobs, now, run), run)


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


def find_sources(stack: ExitStack, stores: Sequence[str], queues: Collection[str] | None = None) -> list[AnySource]:
    """Returns the stores with all of their queues, or with those of the given names. A plain PostgreSQL URL is that of
    a campaigns' database. Embedded servers run until the stack is closed."""
    found: list[AnySource] = []
    missing = set(queues or ())
    for store in stores:
        if is_database(store):
            found.append(find_database(store))
            continue
        url = stack.enter_context(reached(store))
        names = list_queues(urls.parse(url))
        if not queues:
            found.append(Source(url, store_name(store)))
            continue
        chosen = tuple(name for name in names if name in queues)
        missing -= set(chosen)
        if chosen:
            found.append(Source(url, store_name(store), chosen))
    if missing:
        rule = f"is in none of the stores: {', '.join(store_name(store) for store in stores if not is_database(store))}"
        raise InvalidOption("queue", min(missing), rule)
    return found


def ingest(
    spark: AnySession,
    lake: Lake,
    sources: Sequence[AnySource],
    *,
    max_rows: int = MAX_ROWS,
    progress: Progress = silent,
) -> IngestResult:
    """Ingests what is there now. A source that fails is reported; the others continue. Spark is not used if no source
    has anything new."""
    with lake.files.locked("ingest"), lake.run("ingest") as run, ThreadPoolExecutor(_AT_ONCE) as threads:
        progress("looking", 0, len(sources))
        looks = threads.map(take_look, sources)
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


class _Step:
    """One source of an ingest."""

    def __init__(self, source: AnySource, look: Look, last: Look | None) -> None:
        self.source, self.look = source, look
        self.has_news = has_news(look, last)
        offsets = None if last is None else last.offsets
        self.result = SourceResult(source.store, offsets=offsets, unchanged=not self.has_news)


def _ingest_one(spark: SparkSession, lake: Lake, step: _Step, run: Run, max_rows: int) -> None:
    source, result = step.source, step.result
    for tries_left in reversed(range(_TRIES)):
        try:
            _take_in(spark, lake, source, run=run, max_rows=max_rows, result=result)
        except Exception as error:  # the failure of one source is in the result and does not stop the others
            # Any other error is Spark's: a machine without memory loses Python processes before they can report one.
            # The checkpoint makes another attempt harmless.
            result.error = sentence(error)
            _log.warning("%s was not ingested: %s; the other sources continue", source.name, result.error)
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
