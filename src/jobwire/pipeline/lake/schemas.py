"""The columns of every table, defined once: Arrow and Spark schemas are both made from here.

Times are UTC timestamps, payloads and other values of a job are JSON texts, every table begins with `store, queue`.
Those about campaigns are in campaign_schemas.py. No name is a reserved word of PostgreSQL, DuckDB, Spark, BigQuery or
Snowflake in a published table, so that a query works in each of them without quotes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class Columns:
    """A table's columns as `name type` pairs in Spark's words."""

    fields: tuple[tuple[str, str], ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.fields)

    @cached_property
    def ddl(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self.fields)

    @cached_property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(name, _ARROW[kind]) for name, kind in self.fields])

    @cached_property
    def spark(self) -> StructType:
        from pyspark.sql import types  # noqa: PLC0415 Spark is not needed to read a store

        kinds: dict[str, types.DataType] = {
            "string": types.StringType(),
            "int": types.IntegerType(),
            "bigint": types.LongType(),
            "double": types.DoubleType(),
            "boolean": types.BooleanType(),
            "binary": types.BinaryType(),
            "date": types.DateType(),
            "timestamp": types.TimestampType(),
        }
        return types.StructType([types.StructField(name, kinds[kind]) for name, kind in self.fields])

    def plus(self, *more: str) -> Columns:
        """Returns these columns and more, each given as `name type`."""
        return columns(*(f"{name} {kind}" for name, kind in self.fields), *more)

    def without(self, names: Sequence[str]) -> Columns:
        return Columns(tuple(field for field in self.fields if field[0] not in names))


def columns(*fields: str) -> Columns:
    """Returns columns from `name type` texts."""
    return Columns(tuple((name, kind) for name, kind in (field.split() for field in fields)))


JOBS = columns(
    "store string",
    "queue string",
    "id string",
    "name string",
    "state string",  # jobwire's word, see jobwire.State
    "native_state string",
    "priority bigint",  # as the protocol has it
    "position bigint",  # among the jobs of its state in the order in which they would run; null where unknown
    "attempts int",  # runs in all that the job may have
    "attempts_made int",
    "payload string",
    "result string",
    "error string",
    "stacktrace string",
    "progress string",
    "parent string",  # "<queue>:<id>"
    "unique_key string",
    "created_at timestamp",
    "run_at timestamp",  # when it is due: null means at once
    "started_at timestamp",
    "finished_at timestamp",
    "worker string",
    "raw string",  # JSON object of every native field that no column above holds word for word
    "fingerprint string",  # changes whenever the stored job changes; compared by the store itself before a purge
    "malformed string",  # why the stored job can't be read as one; null for a sound job
)
"""`format("jobwire")` with `table=jobs`."""

EVENTS = columns(
    "store string",
    "queue string",
    "id string",  # one event has one id, however often it is read
    "kind string",  # the protocol's own word
    "job_id string",
    "at timestamp",
    "data string",  # JSON object of the event's other native fields
    "malformed string",
)
"""`format("jobwire")` with `table=events`. A row of kind `gap` stands for events between `data.after` and `data.before`
that the store trimmed before they could be read."""

SNAPSHOTS = JOBS.plus("seen_at timestamp", "run string")
"""Bronze: jobs as they were at the time of an ingest."""

BRONZE_EVENTS = EVENTS.plus("ingested_at timestamp", "day date")
"""Bronze: events as they were read; some more than once, where a source reads with an overlap."""

SILVER_EVENTS = columns(
    "store string",
    "queue string",
    "id string",
    "kind string",  # one vocabulary, see jobwire.pipeline.history.silver_jobs
    "native_kind string",
    "job_id string",
    "happened_at timestamp",
    "worker string",
    "error string",
    "data string",
    "day date",
)

SILVER_JOBS = columns(
    "store string",
    "queue string",
    "id string",
    "name string",
    "state string",
    "priority bigint",
    "attempts int",
    "attempts_made int",
    "payload string",
    "payload_hash string",
    "result string",
    "error string",
    "error_class string",
    "run_errors string",  # JSON object: the errors of its failed runs by their numbers, where the store keeps them
    "parent string",
    "campaign string",
    "created_at timestamp",
    "scheduled_at timestamp",
    "started_at timestamp",
    "finished_at timestamp",
    "worker string",
    "seen_at timestamp",
    "adding_reported boolean",  # an event has it; null in rows of older releases
    "day date",  # of created_at, else of the first time that the job was seen
)

ATTEMPTS = columns(
    "store string",
    "queue string",
    "job_id string",
    "name string",
    "attempt int",  # 1, 2, 3 in the order of starts
    "ready_at timestamp",  # when the job could have run: added, became due, or was handed back
    "started_at timestamp",
    "ended_at timestamp",
    "outcome string",  # completed, failed, stalled, open
    "error string",
    "error_class string",
    "worker string",
    "wait_ms bigint",
    "run_ms bigint",  # null for a stalled run, whose end is not known
    "gave_up boolean",  # the job failed for good with this run
    "forgotten int",  # runs of the job directly before this one that the store did not keep
    "day date",  # of started_at
)

QUARANTINE = columns(
    "store string",
    "queue string",
    "source string",  # events, jobs, load
    "id string",
    "reason string",
    "record string",
    "seen_at timestamp",
    "day date",
)
"""Records that could not be read, with the reason."""

THROUGHPUT_HOURLY = columns(
    "store string",
    "queue string",
    "name string",
    "hour timestamp",
    "added bigint",
    "started bigint",
    "completed bigint",
    "failed bigint",  # jobs that failed for good
    "stalled bigint",
    "retried bigint",  # runs that were not their job's first
)

LATENCY_HOURLY = columns(
    "store string",
    "queue string",
    "name string",
    "hour timestamp",  # in which the runs started
    "runs bigint",
    "wait_p50 bigint",
    "wait_p95 bigint",
    "wait_p99 bigint",
    "run_p50 bigint",
    "run_p95 bigint",
    "run_p99 bigint",
    "wait_sketch string",  # see jobwire.pipeline.history.latency_sketch
    "run_sketch string",
)

FAILURES_DAILY = columns(
    "store string",
    "queue string",
    "name string",
    "day date",
    "error_class string",
    "failures bigint",  # failed runs
    "jobs bigint",  # distinct jobs among them
    "sample_error string",  # the first error of the class that day, whole
    "first_at timestamp",
    "last_at timestamp",
)

WORKERS_HOURLY = columns(
    "store string",
    "queue string",
    "worker string",
    "hour timestamp",
    "runs bigint",  # that touched the hour
    "busy_ms bigint",  # within the hour, all runs added up
    "utilisation double",  # busy time / one hour: above 1 where a worker runs several jobs at once
)

RETRIES = columns(
    "store string",
    "queue string",
    "name string",
    "attempts int",  # runs that the jobs took
    "jobs bigint",
    "succeeded bigint",
    "share double",  # of all the queue's and name's successes: what the n-th run brought
)

TALLIES = columns(
    "store string",
    "queue string",
    "name string",  # null: of all names
    "tally string",
    "number int",  # of runs that finished jobs took; null for other tallies
    "value bigint",
    "day date",  # of the rows of silver that were counted
)

GAPS = columns("store string", "queue string", "after string", "before string", "lost bigint", "noticed_at timestamp")

QUALITY = columns("check_name string", "store string", "queue string", "value bigint", "ok boolean", "note string")

RUNS = columns(
    "run string",
    "command string",
    "started_at timestamp",
    "ended_at timestamp",
    "outcome string",  # running, ok, failed, interrupted
    "rows_in bigint",
    "rows_out bigint",
    "offsets string",  # JSON
    "notes string",  # JSON
    "error string",
)

ARCHIVE = JOBS.plus("archived_at timestamp", "run string", "private string", "day date")
"""Finished jobs whole, as `jobs` had them; `day` is that of finished_at, `private` the rules of privacy as a JSON array
of texts, null if there were none. A job that ran again later is there twice,
with two fingerprints."""

WORK = columns(
    "store string",
    "queue string",
    "run string",
    "task int",
    "task_attempt int",  # above 0: Spark has tried the task again
    "worker string",
    "host string",
    "started_at timestamp",
    "ended_at timestamp",  # null for a worker that was lost
    "outcome string",  # idle, time, stopped, failed, lost
    "error string",  # why it ended, or could not begin
    "claimed bigint",
    "completed bigint",
    "failed bigint",  # jobs that failed for good
    "retried bigint",  # failed runs after which another attempt follows
    "released bigint",
    "snoozed bigint",
    "parked bigint",
    "lost bigint",  # outcomes that the store refused, as the claim was not valid any more
    "recovered bigint",
    "busy_ms bigint",  # all runs added up
    "failures string",  # JSON object: failed runs by the class of their error
    "day date",  # of started_at
)
"""A row for each worker of `jobwire pipeline work`; of a lost one, as it was last seen."""

WORK_RUNS = columns(
    "store string",
    "queue string",
    "run string",
    "task int",
    "worker string",
    "job_id string",
    "name string",
    "attempt int",
    "verdict string",  # completed, failed, retried, released, snoozed, parked, lost
    "error string",
    "error_class string",
    "started_at timestamp",
    "ended_at timestamp",
    "run_ms bigint",
    "day date",  # of started_at
)
"""A row for each run of a job by `jobwire pipeline work`. Those of a lost worker are missing."""
