"""Rows per second of a DataFrame that becomes jobs, beside `Queue.add_many` called from one process."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.pipeline.places import PROTOCOLS, fill, payload, session, stores
from pyspark.sql import functions as F  # noqa: N812

from jobwire import codec
from jobwire.sync import Queue

PARTS = 8


def measure(folder: Path, size: int, rounds: int) -> dict[str, Any]:
    """Every write goes to a queue of its own. Spark's rows get ids, so that a task that runs twice adds nothing twice;
    those of add_many get none."""
    found: dict[str, Any] = {}
    with stores(folder) as places:
        for cores in (1, 2):
            with session(cores) as spark:
                rows = _rows(spark, size).persist()
                rows.count()
                table = {protocol: _one(rows, places[protocol], f"c{cores}", size, rounds) for protocol in PROTOCOLS}
                found[f"{cores}"] = {"table": table}
    return found


def _rows(spark: Any, size: int) -> Any:
    """Payloads as the plain way has them, from a column that Spark computes; as many in each partition."""
    assert size % PARTS == 0, f"{size} rows can't be put into {PARTS} equal partitions"
    before, after = codec.dumps(payload(0)).decode().split('"n":0')
    text = F.concat(F.lit(f'{before}"n":'), F.col("id").cast("string"), F.lit(after))
    return spark.range(size, numPartitions=PARTS).select("id", text.alias("payload"))


def _one(rows: Any, url: str, name: str, size: int, rounds: int) -> dict[str, Any]:
    """Ways take turns; a first round, not counted, warms them up. `start` writes one row in each task."""
    took: dict[str, list[float]] = {"spark": [], "plain": [], "start": []}
    first = rows.where(F.col("id") % (size // PARTS) == 0)
    for number in range(rounds + 1):
        for way, spent in took.items():
            queue = f"{name}-{way}-{number}"
            fill(url, queue, 0)
            began = time.perf_counter()
            if way == "plain":
                fill(url, queue, size)
            else:
                some = rows if way == "spark" else first
                some.select("payload").write.format("jobwire").options(url=url, queue=queue).mode("append").save()
            seconds = time.perf_counter() - began
            with Queue(queue, url) as there:
                held, wanted = sum(there.counts().values()), PARTS if way == "start" else size
                assert held == wanted, (url, queue, held, wanted)
            if number:
                spent.append(seconds)
    together = list(zip(*took.values(), strict=True))
    answer = {
        "rate": size / median(took["spark"]),
        "plain": size / median(took["plain"]),
        "start": median(took["start"]),
        "ratio": median(plain / whole for whole, plain, _ in together),
        "ratio_rows": median(plain / max(whole - start, 1e-3) for whole, plain, start in together),
        "seconds": took,
    }
    print(
        f"write {name} {url.partition('+')[0]}: {answer['rate']:,.0f}/s, add_many {answer['plain']:,.0f}/s",
        flush=True,
    )
    return answer
