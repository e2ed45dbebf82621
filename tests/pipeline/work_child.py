"""A fleet on a cluster whose handler keeps a ledger outside of the system; prints the fleet's result."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.spark.session import spark_session
from jobwire.pipeline.work import work

QUEUE = "backlog"
FAILS = 50
"""Every job of so many fails."""


def main(master: str, conf: dict[str, str], url: str, lake: str, ledger: str) -> None:
    # A function within a function goes to Spark's processes as it is.
    async def handle(job: Any) -> int:
        import asyncio
        import os

        number = int(job.data["n"])
        verdict = "failed" if number % FAILS == 0 else "completed"
        with Path(ledger).open("a") as file:  # a short line is written in one piece
            file.write(f"{number} {verdict} {os.getpid()}\n")
        await asyncio.sleep(0.04)  # long enough for the second worker to start before the first has done all
        if verdict == "failed":
            raise ValueError(f"{number} fails")
        return number

    spark = spark_session(master, conf)
    try:
        options: dict[str, Any] = {"concurrency": 10, "lease": 3, "recover_every": 1}
        result = work(spark, Lake(lake), QUEUE, handle, url, tasks=2, **options)
    finally:
        spark.stop()
    print(f"RESULT {json.dumps(result.as_dict())}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), *sys.argv[3:])
