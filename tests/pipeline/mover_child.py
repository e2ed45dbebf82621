"""Runs one mover in a process of its own, for a test to kill: says each stage on a line of its standard output."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from jobwire.pipeline.archive.archive import archive
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.load.load import load
from jobwire.pipeline.move import move
from jobwire.pipeline.spark.session import SMALL, spark_session


def say(stage: str, done: int, total: int | None) -> None:
    print(f"{stage}:{done}:{total}", flush=True)


def main(command: str, given: dict[str, Any]) -> None:
    spark = spark_session("local[2,3]", {"spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2", **SMALL})
    say("session", 0, None)
    lake = Lake(given["lake"])
    if command == "load":
        load(spark, given["path"], given["url"], "mail", lake=lake, hold=given["hold"], progress=say)
    elif command == "move":
        move(spark, lake, given["url"], given["to"], "mail", progress=say)
    else:
        archive(spark, lake, given["url"], "mail", datetime.now(UTC), purge=True, progress=say)
    say("end", 0, None)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
