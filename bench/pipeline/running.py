"""A whole `run` over a live BullMQ store: ingest of a long event stream and of a queue's jobs, build, report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.pipeline import stream
from bench.pipeline.memory import Memory
from bench.pipeline.places import apart, fill, session, stores

from jobwire.pipeline.history.build import build
from jobwire.pipeline.history.ingest import Source, ingest
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.report.from_lake import report
from jobwire.pipeline.stores.address import store_name

CORES = 2
JOBS_OF = 50
"""One job in the store for so many events in the stream."""
TOLD, KEPT = "told", "kept"


def measure(folder: Path, size: int, memory: str) -> dict[str, Any]:
    with stores(folder) as places:
        url = places["bullmq"]
        events = stream.fill(url, TOLD, size)
        fill(url, KEPT, size // JOBS_OF)
        return {"events": events, "jobs": size // JOBS_OF, **apart(_run, folder, url, memory)}


def _run(folder: Path, url: str, memory: str) -> dict[str, Any]:
    began = time.perf_counter()
    stages: dict[str, float] = {}
    memories: dict[str, dict[str, float]] = {}

    with session(CORES, memory) as spark:
        lake = Lake(str(folder / "lake"))
        steps = {
            "ingest": lambda: ingest(spark, lake, [Source(url, store_name(url), (TOLD, KEPT))]),
            "build": lambda: build(spark, lake),
            "report": lambda: report(lake, folder / "report"),
        }
        answers: dict[str, Any] = {}
        ready = time.perf_counter()
        for name, step in steps.items():
            start = time.perf_counter()
            with Memory() as watched:
                answers[name] = step()
            stages[name], memories[name] = time.perf_counter() - start, watched.most
        seconds = time.perf_counter() - ready
    [taken] = answers["ingest"].sources
    assert taken.error is None, taken.error
    rows = answers["build"].rows
    print(f"run: {taken.events:,} events in {seconds:.1f} s: {stages}", flush=True)
    return {
        "taken": taken.events,
        "seconds": seconds,
        "session": ready - began,
        "stages": stages,
        "memory": memories,
        "rows": dict(rows),
    }
