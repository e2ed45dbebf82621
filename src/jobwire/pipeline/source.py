"""`format("jobwire")`: a live queue as a Spark table and as a Spark stream, and a DataFrame as jobs.

Spark makes these objects anew in its processes and pickles them between; each call opens the store for itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from jobwire import urls
from jobwire.errors import InvalidOption
from jobwire.model import State
from jobwire.pipeline.reach import reached
from jobwire.pipeline.schemas import EVENTS, JOBS
from jobwire.pipeline.source_options import SourceOptions, parse_options
from jobwire.pipeline.stores import QueueStore, Wanted, open_store
from jobwire.pipeline.writer import JobWriter

_COLUMNS = {"jobs": JOBS, "events": EVENTS}


class JobwireSource(DataSource):
    """What Spark knows as the format `jobwire`."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._parsed = parse_options(dict(options))

    @classmethod
    def name(cls) -> str:
        return "jobwire"

    def schema(self) -> StructType:
        return _COLUMNS[self._parsed.table].spark

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._parsed.table == "events":
            return EventsReader(self._parsed)
        return FilteringJobsReader(self._parsed) if self._parsed.pushdown else JobsReader(self._parsed)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._parsed.table != "events":
            raise InvalidOption("table", self._parsed.table, "must be events for a stream: jobs are read in batch")
        return EventsStream(self._parsed)

    def writer(self, schema: StructType, overwrite: bool) -> JobWriter:
        if overwrite:
            raise InvalidOption("mode", "overwrite", "must be append: a queue's jobs are never thrown away by a write")
        return JobWriter(self._parsed, schema)


class Part(InputPartition):
    """A slice of a read, with what the store needs to find it."""


@contextmanager
def opened(options: SourceOptions) -> Generator[QueueStore]:
    """The queue of the options, for as long as one call needs it."""
    with reached(options.url) as url:
        store = open_store(urls.parse(url), options.queue, options.store)
        try:
            yield store
        finally:
            store.close()


class JobsReader(DataSourceReader):
    """All jobs of a queue, once, in balanced slices."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        with opened(self._options) as store:
            return [Part(part) for part in store.plan_jobs(self._options.wanted, self._options.parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:  # Spark's own stand-in for an empty plan
            return
        with opened(self._options) as store:
            yield from store.read_jobs(partition.value, self._options.wanted)


class FilteringJobsReader(JobsReader):
    """Takes the query's filters as hints for the store; Spark applies them to the rows as well."""

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # type: ignore[override]
        wanted = self._options.wanted
        for one in filters:
            wanted = narrowed(wanted, one)
        self._options = replace(self._options, wanted=wanted)
        yield from filters


class EventsReader(DataSourceReader):
    """The events that the store still tells of, up to the moment of planning."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        with opened(self._options) as store:
            first = store.first_offset()
            return [Part(part) for part in store.plan_events(first, store.latest_offset(first, None))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        with opened(self._options) as store:
            yield from store.read_events(partition.value)


class EventsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The events of a queue as they come. `availableNow` ends at what was there when it began."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._bounded = False
        self._target: dict[str, Any] | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._bounded = True

    def initialOffset(self) -> dict[str, Any]:
        with opened(self._options) as store:
            return dict(store.first_offset())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        with opened(self._options) as store:
            if self._bounded and self._target is None:
                self._target = dict(store.latest_offset(start, None))
            if self._target is not None and store.passed(start, self._target):
                return start
            latest = dict(store.latest_offset(start, rows))
            if self._target is not None and store.passed(latest, self._target):
                return self._target
            return latest

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._target

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        with opened(self._options) as store:
            return [Part(part) for part in store.plan_events(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return
        with opened(self._options) as store:
            yield from store.read_events(partition.value)


def narrowed(wanted: Wanted, one: Filter) -> Wanted:
    """What is wanted once a filter of the query is known; unchanged where the filter is of no help."""
    match one:
        case EqualTo(("state",), str(value)):
            return replace(wanted, states=_both(wanted.states, _states([value])))
        case In(("state",), values):
            return replace(wanted, states=_both(wanted.states, _states(values)))
        case EqualTo(("name",), str(value)):
            return replace(wanted, names=_both(wanted.names, frozenset([value])))
        case In(("name",), values):
            return replace(wanted, names=_both(wanted.names, frozenset(map(str, values))))
        case GreaterThan(("created_at",), datetime() as at) | GreaterThanOrEqual(("created_at",), datetime() as at):
            return replace(wanted, created_from=max(at, wanted.created_from or at))
        case LessThan(("created_at",), datetime() as at):
            return replace(wanted, created_before=min(at, wanted.created_before or at))
        case _:
            return wanted


def _states(values: Sequence[Any]) -> frozenset[State]:
    return frozenset(State(value) for value in values if value in set(State))


def _both(before: frozenset[Any] | None, now: frozenset[Any]) -> frozenset[Any]:
    return now if before is None else before & now
