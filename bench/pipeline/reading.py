"""Rows per second of a queue's jobs and events through Spark, and of the same reader without it.

Both read the same slices with as many processes: Spark's tasks, or the processes of a pool that are there before the
clock starts. Spark's time includes its start of a read, which is also measured alone, on a queue without jobs.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.pipeline import stream
from bench.pipeline.memory import Memory
from bench.pipeline.places import PROTOCOLS, fill, session, stores
from bench.pipeline.row_by_row import KINDS, RowByRow

from jobwire import urls
from jobwire.pipeline.stores.boundary import QueueStore, Wanted, open_store

PARTS = 8
FULL, EMPTY, TOLD = "full", "empty", "told"


@dataclass(frozen=True)
class Table:
    """What is read: `jobs` or `events` of a queue that has this many rows."""

    url: str
    queue: str
    name: str
    rows: int

    @property
    def protocol(self) -> str:
        return self.url.partition("+")[0]

    def options(self, queue: str | None = None) -> dict[str, str]:
        return {"url": self.url, "queue": queue or self.queue, "table": self.name, "parts": str(PARTS)}


def jobs(folder: Path, size: int, rounds: int) -> dict[str, Any]:
    """The table `jobs` of each protocol, and of pg-boss also as the obvious source reads it."""
    with stores(folder) as places:
        for url in places.values():
            fill(url, FULL, size)
            fill(url, EMPTY, 0)
        return _on_cores(lambda spark, cores: _jobs(spark, places, cores, size, rounds))


def events(folder: Path, size: int, rounds: int) -> dict[str, Any]:
    """The table `events` of a BullMQ queue."""
    with stores(folder) as places:
        url = places["bullmq"]
        size = stream.fill(url, TOLD, size)
        table = Table(url, TOLD, "events", size)
        return _on_cores(lambda spark, cores: {"bullmq": _pairs(spark, table, cores, rounds)})


def _on_cores(measured: Callable[[Any, int], dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for cores in (1, 2):
        with session(cores) as spark:
            spark.dataSource.register(RowByRow)
            with Memory() as memory:
                table = measured(spark, cores)
            found[f"{cores}"] = {"table": table, "memory": memory.most}
    return found


def _jobs(spark: Any, places: dict[str, str], cores: int, size: int, rounds: int) -> dict[str, Any]:
    found = {
        protocol: _pairs(spark, Table(places[protocol], FULL, "jobs", size), cores, rounds) for protocol in PROTOCOLS
    }
    options = {"url": places["pgboss"], "queue": FULL, "parts": str(PARTS)}
    took = _rounds(
        rounds,
        {
            "ours": lambda: _through_spark(spark, "jobwire", options),
            **{kind: partial(_through_spark, spark, "row_by_row", {**options, "kind": kind}) for kind in KINDS},
        },
    )
    found["pgboss"]["row_by_row"] = {
        kind: {
            "rate": size / median(took[kind]),
            "times": median(theirs / ours for ours, theirs in zip(took["ours"], took[kind], strict=True)),
        }
        for kind in KINDS
    }
    told = ", ".join(f"{kind} {one['times']:.2f} times" for kind, one in found["pgboss"]["row_by_row"].items())
    print(f"jobs {cores} cores pgboss row by row: {told}", flush=True)
    return found


def _pairs(spark: Any, table: Table, cores: int, rounds: int) -> dict[str, Any]:
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        took = _rounds(
            rounds,
            {
                "plain": lambda: _plain(pool, table),
                "spark": lambda: _through_spark(spark, "jobwire", table.options()),
                "start": lambda: _through_spark(spark, "jobwire", table.options(EMPTY)),
            },
        )
    counted = spark.read.format("jobwire").options(**table.options()).load().count()
    assert counted == table.rows, (table, counted)
    answer = _figures(took, table.rows)
    print(f"{table.name} {cores} cores {table.protocol}: {_shown(answer)}", flush=True)
    return answer


def _figures(took: dict[str, list[float]], size: int) -> dict[str, Any]:
    """`ratio` is of whole times; `ratio_rows` leaves out what Spark takes for a queue without jobs."""
    together = list(zip(took["spark"], took["plain"], took["start"], strict=True))
    return {
        "rate": size / median(took["spark"]),
        "plain": size / median(took["plain"]),
        "start": median(took["start"]),
        "ratio": median(plain / whole for whole, plain, _ in together),
        "ratio_rows": median(plain / max(whole - start, 1e-3) for whole, plain, start in together),
        "seconds": took,
    }


def _shown(answer: dict[str, Any]) -> str:
    return (
        f"{answer['rate']:,.0f}/s, plain {answer['plain']:,.0f}/s, "
        f"ratio {answer['ratio']:.2f}, of rows {answer['ratio_rows']:.2f}"
    )


def _through_spark(spark: Any, source: str, options: dict[str, str]) -> None:
    spark.read.format(source).options(**options).load().write.format("noop").mode("overwrite").save()


def _plain(pool: ProcessPoolExecutor, table: Table) -> None:
    parts = _planned(table)
    rows = sum(pool.map(_read, [table] * len(parts), parts))
    assert rows == table.rows, (table, rows)


def _planned(table: Table) -> Sequence[Any]:
    store = _opened(table)
    try:
        if table.name == "jobs":
            return store.plan_jobs(Wanted(), PARTS)
        first = store.first_offset()
        return store.plan_events(first, store.latest_offset(first, None))
    finally:
        store.close()


def _read(table: Table, part: Any) -> int:
    """In a process of the pool, which opens the store for each slice as Spark's tasks do."""
    store = _opened(table)
    try:
        batches = store.read_jobs(part, Wanted()) if table.name == "jobs" else store.read_events(part)
        return sum(batch.num_rows for batch in batches)
    finally:
        store.close()


def _opened(table: Table) -> QueueStore:
    return open_store(urls.parse(table.url), table.queue, "bench")


def _rounds(rounds: int, ways: Mapping[str, Callable[[], None]]) -> dict[str, list[float]]:
    """Seconds of each way, which take turns. A first round, not counted, warms all of them up."""
    took: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for way, done in ways.items():
            began = time.perf_counter()
            done()
            if number:
                took[way].append(time.perf_counter() - began)
    return took
