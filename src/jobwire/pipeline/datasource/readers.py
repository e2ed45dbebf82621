"""Reads queues in Spark's processes: jobs in batch, events in batch and as a stream.

Spark creates these objects in each of its processes and pickles them in between; each call opens the store for itself.
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
from jobwire.pipeline.datasource.pushdown import narrowed
from jobwire.pipeline.datasource.source_options import SourceOptions
from jobwire.pipeline.privacy.batches import private_events, private_jobs
from jobwire.pipeline.stores.address import reached
from jobwire.pipeline.stores.boundary import QueueStore, list_queues, open_store
from jobwire.pipeline.stores.dialect import dialect_of

_LOOK_EVERY = 15.0


class Part(InputPartition):
    """A partition of a read: the queue, and what the store needs to find the partition in it."""

    def __init__(self, queue: str, place: Any) -> None:
        super().__init__((queue, place))


class Reading:
    """The queues that are read, and how one of them is opened for the time of a call."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @contextmanager
    def store(self, queue: str) -> Generator[QueueStore]:
        with reached(self._options.url) as url:
            store = open_store(urls.parse(url), queue, self._options.store)
            try:
                yield store
            finally:
                store.close()

    def queues(self) -> Sequence[str]:
        if self._options.queues is not None:
            return self._options.queues
        with reached(self._options.url) as url:
            return list_queues(urls.parse(url))


class JobsReader(Reading, DataSourceReader):
    """Reads all jobs of the queues, once, in balanced partitions."""

    def partitions(self) -> Sequence[InputPartition]:
        queues = self.queues()
        found: list[InputPartition] = []
        for queue in queues:
            with self.store(queue) as store:
                each = max(1, self._options.parts // len(queues))
                found += [Part(queue, place) for place in store.plan_jobs(self._options.wanted, each)]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's own stand-in for an empty plan
            return
        queue, place = partition.value
        with self.store(queue) as store:
            found = store.read_jobs(place, self._options.wanted)
            yield from private_jobs(found, self._options.privacy, queue, dialect_of(self._options.address.protocol))


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
        found: list[InputPartition] = []
        for queue, end in ends.items():
            with self.store(queue) as store:
                start = starts.get(queue) or store.first_offset()
                if start != end:
                    found += [Part(queue, place) for place in store.plan_events(start, end)]
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        queue, place = partition.value
        with self.store(queue) as store:
            rules, dialect = self._options.privacy.of_queue(queue), dialect_of(self._options.address.protocol)
            yield from private_events(store.read_events(place), rules, store.payloads, dialect)


class EventsReader(_Events, DataSourceReader):
    """Reads the events that the store still has, up to the moment of planning."""

    def partitions(self) -> Sequence[InputPartition]:
        ends: dict[str, Any] = {}
        for queue in self.queues():
            with self.store(queue) as store:
                ends[queue] = store.latest_offset(store.first_offset(), None)
        return self.plan({}, ends)


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
        return {}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if self._bounded and self._targets is None:
            self._targets = {queue: self._latest(queue, start.get(queue), None) for queue in self._current()}
        ends = dict(start)
        for queue in self._current() if self._targets is None else self._targets:
            ends[queue] = self._latest(queue, start.get(queue), rows)
        return ends

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._targets

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return self.plan(start, end)

    def _latest(self, queue: str, start: dict[str, Any] | None, rows: int | None) -> dict[str, Any]:
        target = (self._targets or {}).get(queue)
        with self.store(queue) as store:
            begin = start if start is not None else store.first_offset()
            if target is not None and store.passed(begin, target):
                return dict(begin)
            latest = dict(store.latest_offset(begin, rows))
            return target if target is not None and store.passed(latest, target) else latest

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
