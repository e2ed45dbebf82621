"""The questions that three gold tables answer, put to the same Parquet files by a plain script with DuckDB.

Takes an order as its last argument and prints one JSON object. Silver is not kept, nothing is checked or published,
and only BullMQ's events are understood.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import duckdb

HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000

EVENTS = """
CREATE TEMP TABLE events AS
SELECT job_id, epoch_us("at") AS moment, split_part(id, '-', 2)::BIGINT AS number,
    CASE
        WHEN kind = 'waiting' AND json_extract_string(data, '$.prev') IN ('active', 'failed', 'completed')
        THEN 'retried' WHEN kind = 'active' THEN 'started' ELSE kind
    END AS kind,
    CASE WHEN kind = 'added' THEN json_extract_string(data, '$.name') END AS name,
    json_extract_string(data, '$.failedReason') AS error,
    try_cast(json_extract_string(data, '$.delay') AS BIGINT) * 1000 AS due
FROM read_parquet('{events}', hive_partitioning = false)
WHERE malformed IS NULL AND job_id IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY store, queue, id ORDER BY ingested_at) = 1
"""

JOBS = """
CREATE TEMP TABLE jobs AS
WITH told AS (
    SELECT job_id, max(name) AS name, min(moment) FILTER (kind = 'added') AS created,
        arg_max(kind, (moment, number)) AS state, max(moment) FILTER (kind IN ('completed', 'failed')) AS finished,
        arg_max(error, (moment, number)) FILTER (error IS NOT NULL) AS error
    FROM events GROUP BY job_id
),
seen AS (
    SELECT id AS job_id, name, state, error, epoch_us(created_at) AS created, epoch_us(finished_at) AS finished
    FROM read_parquet('{snapshots}') WHERE malformed IS NULL
    QUALIFY row_number() OVER (PARTITION BY store, queue, id ORDER BY seen_at DESC) = 1
)
SELECT job_id, coalesce(seen.name, told.name) AS name, coalesce(seen.state, told.state) AS state,
    coalesce(seen.error, told.error) AS error, coalesce(seen.created, told.created) AS created,
    coalesce(seen.finished, told.finished) AS finished
FROM told FULL JOIN seen USING (job_id)
"""

RUNS = """
CREATE TEMP TABLE runs AS
WITH cut AS (
    SELECT *, count(*) FILTER (kind = 'started')
        OVER (PARTITION BY job_id ORDER BY moment, number ROWS UNBOUNDED PRECEDING) AS run
    FROM events
),
stretches AS (
    SELECT job_id, run,
        min(moment) FILTER (kind = 'started') AS started,
        arg_min(kind, (moment, number)) FILTER (kind NOT IN ('started', 'added')) AS end_kind,
        arg_min(moment, (moment, number)) FILTER (kind NOT IN ('started', 'added')) AS ended,
        arg_min(error, (moment, number)) FILTER (kind NOT IN ('started', 'added')) AS error,
        max((moment, number)) FILTER (kind IN ('added', 'waiting', 'delayed', 'retried')) AS ready,
        max((moment, number)) FILTER (due IS NOT NULL) AS delayed,
        arg_max(due, (moment, number)) FILTER (due IS NOT NULL) AS due
    FROM cut GROUP BY job_id, run
),
with_ready AS (
    SELECT *, lag(CASE
        WHEN due IS NULL THEN ready[1] WHEN ready > delayed THEN least(due, ready[1]) ELSE due
    END) OVER (PARTITION BY job_id ORDER BY run) AS ready_at
    FROM stretches
)
SELECT with_ready.job_id, jobs.name, run AS attempt, started, ended,
    CASE end_kind WHEN 'completed' THEN 'completed' ELSE 'failed' END AS outcome,
    coalesce(with_ready.error, jobs.error) AS error,
    greatest(0, started - ready_at) // 1000 AS wait_ms, greatest(0, ended - started) // 1000 AS run_ms
FROM with_ready JOIN jobs USING (job_id) WHERE started IS NOT NULL
"""

GOLD = {
    "throughput_hourly": f"""
SELECT name, hour * {HOUR_US} AS hour, sum(added)::BIGINT AS added, sum(started)::BIGINT AS started,
    sum(completed)::BIGINT AS completed, sum(failed)::BIGINT AS failed, sum(retried)::BIGINT AS retried
FROM (
    SELECT name, created // {HOUR_US} AS hour, 1 AS added, 0 AS started, 0 AS completed, 0 AS failed, 0 AS retried
    FROM jobs
    UNION ALL SELECT name, finished // {HOUR_US}, 0, 0, 0, 1, 0 FROM jobs WHERE state = 'failed'
    UNION ALL SELECT name, started // {HOUR_US}, 0, 1, 0, 0, (attempt > 1)::INT FROM runs
    UNION ALL SELECT name, ended // {HOUR_US}, 0, 0, 1, 0, 0 FROM runs WHERE outcome = 'completed'
) GROUP BY ALL ORDER BY ALL""",
    "latency_hourly": f"""
SELECT name, started // {HOUR_US} * {HOUR_US} AS hour, count(*) AS runs,
    quantile_disc(wait_ms, 0.50) AS wait_p50, quantile_disc(wait_ms, 0.95) AS wait_p95,
    quantile_disc(wait_ms, 0.99) AS wait_p99, quantile_disc(run_ms, 0.50) AS run_p50,
    quantile_disc(run_ms, 0.95) AS run_p95, quantile_disc(run_ms, 0.99) AS run_p99
FROM runs GROUP BY ALL ORDER BY ALL""",
    "failures_daily": rf"""
SELECT name, ended // {DAY_US} AS day, coalesce(
        CASE WHEN error ^@ 'Error:' THEN regexp_replace(error, '\d+(?:[.,:]\d+)*', '#', 'g')
        ELSE regexp_extract(error, '^\w+') END,
        '(no error told)') AS error_class,
    count(*) AS failures, count(DISTINCT job_id) AS jobs
FROM runs WHERE outcome = 'failed' GROUP BY ALL ORDER BY ALL""",
}


def main() -> None:
    order = json.loads(sys.argv[-1])
    began = time.perf_counter()
    database = duckdb.connect()
    database.execute(f"SET threads = {order['cores']}")
    database.execute(f"SET memory_limit = '{order['memory']}'")
    database.execute(f"SET temp_directory = '{order['out']}/spill'")
    Path(order["out"]).mkdir(parents=True, exist_ok=True)
    stages: dict[str, float] = {}
    for name, text in (("events", EVENTS), ("jobs", JOBS), ("runs", RUNS), *GOLD.items()):
        start = time.perf_counter()
        if name in GOLD:
            database.execute(f"COPY ({text}) TO '{order['out']}/{name}.parquet'")
        else:
            database.execute(text.format(**order))
        stages[name] = time.perf_counter() - start
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "stages": stages, "memory": memory, "version": duckdb.__version__}))


if __name__ == "__main__":
    main()
