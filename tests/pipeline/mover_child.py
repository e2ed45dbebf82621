"""Runs movers side by side in a process of its own, for a test to kill while each is at the step that the test chose.

    mover_child.py '{"move": {"stop": "copy", ...}, "load": {"stop": "add", ...}}'

A mover that begins its step writes `reached NAME` and waits for a line on standard input. Then it goes on, at most to
the beginning of its next step: however quick the machine is, the steps of later rounds are still to be done. The movers
of a process share its Spark: starting it takes longer than what they do. One that has ended writes `ended NAME`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from jobwire.pipeline.archive.archive import archive
from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.ingest import Source, ingest
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.load.load import load
from jobwire.pipeline.move import move
from jobwire.pipeline.spark.progress import Progress
from jobwire.pipeline.spark.session import SMALL, spark_session
from jobwire.pipeline.stores.address import store_name

_TRIES = 5
_go = threading.Event()


class Stop:
    """A Progress that waits at the beginning of one stage until it may go on, and at the beginning of the next stage
    until it is killed."""

    def __init__(self, name: str, stage: str) -> None:
        self._name = name
        self._stage = stage
        self._reached = False

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        if self._reached and stage != self._stage:
            threading.Event().wait()
        if stage == self._stage and not self._reached:
            self._reached = True
            say(f"reached {self._name}")
            _go.wait()


def _load(spark: Any, given: dict[str, Any], progress: Progress) -> None:
    load(spark, given["path"], given["url"], "mail", lake=Lake(given["lake"]), hold=True, progress=progress)


def _move(spark: Any, given: dict[str, Any], progress: Progress) -> None:
    move(spark, Lake(given["lake"]), given["url"], given["to"], "mail", progress=progress)


def _archive(spark: Any, given: dict[str, Any], progress: Progress) -> None:
    archive(spark, Lake(given["lake"]), given["url"], "mail", datetime.now(UTC), purge=True, progress=progress)


def _ingest(spark: Any, given: dict[str, Any], progress: Progress) -> dict[str, int]:
    lake, source = Lake(given["lake"]), Source(given["url"], store_name(given["url"]))
    # Spark gives a process that reads a stream ten seconds to start: on a busy machine the command is given again.
    results = (ingest(spark, lake, [source], progress=progress) for _ in range(_TRIES))
    assert any(result.good for result in results), f"{_TRIES} ingests have failed"
    events = lake.bronze_events(spark)
    build(spark, lake)
    return {"rows": events.count(), "ids": events.select("id").distinct().count()}


COMMANDS: dict[str, Callable[[Any, dict[str, Any], Progress], Any]] = {
    "load": _load,
    "move": _move,
    "archive": _archive,
    "ingest": _ingest,
}


def say(text: str) -> None:
    print(text, flush=True)


def main(movers: dict[str, dict[str, Any]]) -> None:
    spark = spark_session("local[2,3]", {"spark.driver.memory": "1500m", "spark.sql.shuffle.partitions": "2", **SMALL})

    def run(name: str, given: dict[str, Any]) -> None:
        try:
            COMMANDS[given["command"]](spark, given, Stop(name, given["stop"]))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        say(f"ended {name}")

    threads = [threading.Thread(target=run, args=each) for each in movers.items()]
    for thread in threads:
        thread.start()
    sys.stdin.readline()
    _go.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
