"""Reads queues in Spark's processes: jobs in batch, events in batch and as a stream.

Spark creates these objects in each of its processes and pickles them in between; each call opens the store for itself,
once for all queues.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from jobwire import urls
from jobwire.errors import InvalidOption
from jobwire.pipeline.datasource.by_queue import by_queue
from jobwire.pipeline.datasource.planning import as_partitions, latest_offsets, pieces_of, plan_events, plan_jobs
from jobwire.pipeline.datasource.pushdown import narrowed
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.privacy.batches import private_events, private_jobs
from jobwire.pipeline.stores.address import reached
from jobwire.pipeline.stores.boundary import StoreConnection, connect, list_queues
from jobwire.pipeline.stores.dialect import dialect_of

_LOOK_EVERY = 15.0


class Reading:
    """The queues that are read, and how they are opened for the time of a call."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @contextmanager
    def connected(self) -> Generator[StoreConnection]:
        with reached(self._options.url) as url:
            connection = connect(urls.parse(url), self._options.store)
            try:
                yield connection
            finally:
                connection.close()

    def queues(self) -> Sequence[str]:
        if self._options.queues is not None:
            return self._options.queues
        with reached(self._options.url) as url:
            return list_queues(urls.parse(url))


class JobsReader(Reading, DataSourceReader):
    """Reads all jobs of the queues, once, in balanced partitions."""

    def partitions(self) -> Sequence[InputPartition]:
        return as_partitions(plan_jobs(self.connected, self.queues(), self._options.wanted, self._options.parts))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        privacy, dialect = self._options.privacy, dialect_of(self._options.address.protocol)
        with self.connected() as connection:
            for piece in pieces_of(partition):
                found = connection.queue(piece.queues).read_jobs(piece.part, self._options.wanted)
                for queue, batches in by_queue(found, piece.queues, apart=bool(privacy.options)):
                    yield from private_jobs(batches, privacy, queue, dialect)


class FilteringJobsReader(JobsReader):
    """Takes the query's filters as hints for the store; Spark applies them to the rows as well."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # type: ignore[override]
        wanted = self._options.wanted
        for one in filters:
            wanted = narrowed(wanted, one)
        self._options = replace(self._options, wanted=wanted)
        yield from filters


class _Events(Reading):
    def plan(self, starts: Mapping[str, Any], ends: Mapping[str, Any]) -> Sequence[InputPartition]:
        spans = {queue: (starts.get(queue), end) for queue, end in ends.items() if starts.get(queue) != end}
        return as_partitions(plan_events(self.connected, spans, self._options.parts))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        privacy, dialect = self._options.privacy, dialect_of(self._options.address.protocol)
        with self.connected() as connection:
            for piece in pieces_of(partition):
                found = connection.queue(piece.queues).read_events(piece.part)
                for queue, batches in by_queue(found, piece.queues, apart=bool(privacy.options)):
                    rules, payloads = privacy.of_queue(queue), connection.queue([queue]).payloads
                    yield from private_events(batches, rules, payloads, dialect)


class EventsReader(_Events, DataSourceReader):
    """Reads the events that the store still has, up to the moment of planning."""

    def partitions(self) -> Sequence[InputPartition]:
        return self.plan({}, latest_offsets(self.connected, dict.fromkeys(self.queues())))


class EventsStream(_Events, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams the events of queues as they come. Queues that are new to the store join. Offsets are by queue.

    `availableNow` ends at what was there when it began.
    """

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._bounded = False
        self._targets: dict[str, Any] | None = None
        self._looked_at = -math.inf
        self._known: Sequence[str] = ()

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._bounded = True

    def initialOffset(self) -> dict[str, Any]:
        return dict(self._options.begin)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if self._bounded and self._targets is None:
            starts = {queue: start.get(queue) for queue in self._current()}
            self._targets = dict(latest_offsets(self.connected, starts))
        targets = self._targets
        if targets is None:
            starts = {queue: start.get(queue) for queue in self._current()}
        else:
            starts = {queue: start.get(queue) for queue, target in targets.items() if start.get(queue) != target}
        return {**start, **latest_offsets(self.connected, starts, rows, targets)}

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._targets

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.plan(start, end)

    def _current(self) -> Sequence[str]:
        """Returns the queues, looked up now and then: finding them can mean a scan of all keys of the store."""
        if time.monotonic() - self._looked_at > _LOOK_EVERY:
            self._known, self._looked_at = self.queues(), time.monotonic()
        return self._known


class RefusedStream(DataSourceStreamReader):
    """Stands for a stream that can't be read. The first question raises the reason."""

    def __init__(self, reason: InvalidOption) -> None:
        self._reason = reason

    def initialOffset(self) -> dict[str, Any]:
        raise self._reason

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise self._reason
