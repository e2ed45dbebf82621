"""One run through the whole pipeline, on whatever Spark it is given; as a program it prints what it counted.

Reads two stores as tables, ingests and builds them into a lake, writes rows back as jobs in both ways there are,
runs workers as tasks and moves a queue.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from jobwire import NewJob
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.ingest import find_sources, ingest
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.load.load import load
from jobwire.pipeline.move import move
from jobwire.pipeline.spark.session import spark_session
from jobwire.pipeline.work import work
from jobwire.sync import Queue

QUEUE = "mail"
WRITTEN = 200
WORKED = 50
MOVED = 60


def run_slice(spark: Any, full: dict[str, str], empty: dict[str, str], root: str) -> dict[str, Any]:
    """`full` and `empty` are stores by protocol: those to read from, and those to write to."""
    lake = Lake(root)
    sessions: set[int] = set()
    read: dict[str, dict[str, int]] = {}
    for protocol, url in full.items():
        by_state = _read(spark, url, "jobs").mapInArrow(_with_session(), "state string, session bigint")
        rows = by_state.groupBy("state", "session").count().collect()
        seen = Counter({"events": _read(spark, url, "events").select("id").distinct().count()})
        for row in rows:
            seen[row["state"]] += row["count"]
            sessions.add(row["session"])
        read[protocol] = dict(seen)
    with ExitStack() as stack:
        ingested = ingest(spark, lake, find_sources(stack, [*full.values()]))
    built = build(spark, lake)
    hours = lake.table(spark, "gold/throughput_hourly")
    sums = {name: F.sum(name).alias(name) for name in ("added", "completed", "failed")}
    gold = hours.groupBy("store").agg(*sums.values()).collect()
    return {
        "sessions": sorted(sessions),
        "read": read,
        "ingested": {
            source.store: {"events": source.events, "jobs": source.jobs, "error": source.error}
            for source in ingested.sources
        },
        "rows": dict(built.rows),
        "gold": {row["store"]: {name: row[name] for name in sums} for row in gold},
        "written": _write(spark, empty),
        "worked": _work(spark, lake, empty["bullmq"]),
        "moved": _move(spark, lake, empty["pgboss"], empty["bullmq"]),
        "runs": [(row["command"], row["outcome"]) for row in lake.runs(spark).collect()],
    }


def _read(spark: Any, url: str, table: str) -> Any:
    return spark.read.format("jobwire").options(url=url, queue=QUEUE, table=table, parts=4).load()


def _with_session() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Gives the state of each job, and the session of processes in which it was read.

    A function within a function goes to Spark's processes as it is: they need not find this module.
    """

    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            session = pa.array([os.getsid(0)] * batch.num_rows, pa.int64())
            yield pa.record_batch([batch.column("state"), session], names=["state", "session"])

    return look


def _write(spark: Any, stores: dict[str, str]) -> dict[str, int]:
    """The same rows through the data source and through the command, into a store each."""
    rows = spark.range(WRITTEN, numPartitions=2).selectExpr(
        "concat('row-', id) as id", "to_json(struct(id as n)) as payload"
    )
    rows.write.format("jobwire").options(url=stores["bullmq"], queue=QUEUE).mode("append").save()
    loaded = load(spark, rows, stores["pgboss"], QUEUE)
    return {"bullmq": _read(spark, stores["bullmq"], "jobs").count(), "pgboss": loaded.added - loaded.missing}


def _work(spark: Any, lake: Lake, url: str) -> dict[str, Any]:
    """Workers of a queue of their own."""
    with Queue("backlog", url) as queue:
        queue.add_many([NewJob({"n": number}) for number in range(WORKED)])

    async def handle(job: Any) -> int:
        return int(job.data["n"]) * 2

    result = work(spark, lake, "backlog", handle, url, tasks=2)
    return {
        "completed": result.completed,
        "left": result.left,
        "errors": result.errors,
        "outcomes": [one.outcome for one in result.workers],
        "runs": lake.table(spark, "work_runs").count(),
    }


def _move(spark: Any, lake: Lake, here: str, there: str) -> dict[str, Any]:
    """A queue of its own, from one store to the other."""
    with Queue("movers", here) as queue:
        queue.add_many([NewJob({"n": number}, priority=number % 3) for number in range(MOVED)])
        before = [job.data["n"] for job in queue.jobs(state="waiting", limit=MOVED)]
    result = move(spark, lake, here, there, "movers")
    with Queue("movers", there) as queue:
        after = [job.data["n"] for job in queue.jobs(state="waiting", limit=MOVED)]
    return {"equal": result.verified.equal, "left": dict(result.remaining), "in_order": after == before}


def main(master: str, conf: dict[str, str], given: dict[str, Any]) -> None:
    spark = spark_session(master, conf)
    try:
        figures = run_slice(spark, **given)
    finally:
        spark.stop()
    print(f"FIGURES {json.dumps(figures)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]))
