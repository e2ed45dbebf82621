"""How long a build takes over more and more events, in how much memory, beside a plain script over the same files."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from bench.pipeline import dump, plain
from bench.pipeline.memory import Memory
from bench.pipeline.places import apart, session

from jobwire.pipeline.history import gold
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.silver_attempts import attempts
from jobwire.pipeline.history.silver_events import silver_events
from jobwire.pipeline.history.silver_jobs import silver_jobs
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.lake.publication import Staged

CORES = 2


class TimedLake(Lake):
    """Knows how long each table took, from the first row to its publication."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.seconds: dict[str, float] = {}
        self._began: dict[str, float] = {}

    def stage(self, name: str, rows: Any, run: str) -> Staged:
        self._began[name] = time.perf_counter()
        return super().stage(name, rows, run)

    def publish(self, staged: Staged, replacing: Any = None) -> Any:
        pointer = super().publish(staged, replacing)
        self.seconds[staged.table] = time.perf_counter() - self._began[staged.table]
        return pointer


def measure(folder: Path, sizes: list[int], memory: str) -> list[dict[str, Any]]:
    """One row per size. Every way has a process of its own, and Spark starts cold as a command does."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        root, out = folder / f"lake-{size}", folder / f"plain-{size}"
        made = apart(dump.make, root, size)
        row = {
            **made,
            "bytes": sum(path.stat().st_size for path in (root / "bronze").rglob("*.parquet")),
            "plain": plain.run(root, out, CORES, memory),
            "alone": apart(three_tables, root, memory),
            "build": apart(built, root, memory),
        }
        row["compared"] = plain.compare(root, out)
        rows.append(row)
        shutil.rmtree(root)
        shutil.rmtree(out)
        print(
            f"build {row['events']:,} events: {row['build']['seconds']:.1f} s, three tables alone "
            f"{row['alone']['seconds']:.1f} s, DuckDB {row['plain']['seconds']:.1f} s; Java {row['build']['memory']}",
            flush=True,
        )
    return rows


def built(root: Path, memory: str) -> dict[str, Any]:
    """All tables of silver and gold, published."""
    began = time.perf_counter()
    with session(CORES, memory) as spark:
        lake = TimedLake(str(root))
        ready = time.perf_counter()
        with Memory() as watched:
            result = build(spark, lake)
            seconds = time.perf_counter() - ready
        return {
            "seconds": seconds,
            "session": ready - began,
            "stages": lake.seconds,
            "memory": watched.most,
            "rows": dict(result.rows),
        }


def three_tables(root: Path, memory: str) -> dict[str, Any]:
    """Only what the plain script answers, from bronze straight to three small tables in memory."""
    with session(CORES, memory) as spark:
        lake = Lake(str(root))
        began = time.perf_counter()
        with Memory() as watched:
            events = silver_events(lake.bronze_events(spark)).persist()
            jobs = silver_jobs(lake.snapshots(spark), events).persist()
            runs = attempts(events, jobs).persist()
            tables = [gold.throughput_hourly(jobs, runs, events), gold.latency_hourly(runs), gold.failures_daily(runs)]
            rows = sum(len(table.collect()) for table in tables)
            seconds = time.perf_counter() - began
        return {"seconds": seconds, "memory": watched.most, "rows": rows}
