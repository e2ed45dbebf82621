"""Stores with very many small queues: how long it takes to see that nothing is new, and to plan a read of them all.

A run without news is a whole `ingest`, from the list of queues to the run log, after one that has read everything.
Planning is what the driver does before the first task of each half of an ingest: the newest offset of every queue, the
partitions of its events, the partitions of its jobs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NoReturn

from bench.pipeline.places import session, stores

from jobwire import urls
from jobwire.pipeline.datasource.planning import latest_offsets, plan_events, plan_jobs
from jobwire.pipeline.history.ingest import Source, find_sources, ingest
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.stores.address import store_name
from jobwire.pipeline.stores.boundary import Wanted, connect, list_queues
from jobwire.sync import Connection, Queue

PARTS = 8


def measure(folder: Path, sizes: list[int]) -> list[dict[str, Any]]:
    """A row per protocol and number of queues; the smallest number is also ingested."""
    rows: list[dict[str, Any]] = []
    with stores(folder) as places:
        for protocol, url in places.items():
            filled = 0
            for queues in sorted(sizes):
                _fill(url, filled, queues)
                filled = queues
                row = {"protocol": protocol, "queues": queues, **_planned(url, queues)}
                if queues == min(sizes):
                    row |= _without_news(folder / f"lake-{protocol}", url)
                rows.append(row)
                print(f"{protocol}, {queues:,} queues: {row}", flush=True)
    return rows


def _fill(url: str, since: int, queues: int) -> None:
    """Has the queues, each with one job that waits."""
    with Connection(url) as connection:
        for number in range(since, queues):
            Queue(f"queue-{number:05}", connection).add({"n": number})


def _planned(url: str, queues: int) -> dict[str, Any]:
    def connected() -> Any:
        return closing(connect(urls.parse(url), "bench"))

    timed = Stopwatch()
    names = timed("list", lambda: list_queues(urls.parse(url)))
    assert len(names) == queues, (len(names), queues)
    ends = timed("offsets", lambda: latest_offsets(connected, dict.fromkeys(names)))
    events = timed("events", lambda: plan_events(connected, {name: (None, end) for name, end in ends.items()}, PARTS))
    jobs = timed("jobs", lambda: plan_jobs(connected, names, Wanted(), PARTS))
    return {
        "planned": sum(timed.seconds.values()),
        "steps": timed.seconds,
        "tasks": {"events": len(events), "jobs": len(jobs)},
    }


def _without_news(root: Path, url: str) -> dict[str, Any]:
    lake = Lake(str(root))
    timed = Stopwatch()
    with session(2) as spark:
        first = timed("first", lambda: ingest(spark, lake, [Source(url, store_name(url))]))
    assert first.good, first

    def again() -> Any:
        with ExitStack() as stack:
            return ingest(_no_session, lake, find_sources(stack, [url]))

    result = timed("no_news", again)
    assert result.sources[0].unchanged, result
    return {"first": timed.seconds["first"], "no_news": timed.seconds["no_news"], "jobs": first.sources[0].jobs}


def _no_session() -> NoReturn:
    raise AssertionError("a run without news needs no Spark")


class Stopwatch:
    """Seconds of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def __call__(self, step: str, do: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        answer = do()
        self.seconds[step] = time.perf_counter() - began
        return answer
