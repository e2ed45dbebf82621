"""Workers as Spark tasks, one and two of them, beside one plain worker in a process of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.pipeline.places import apart, fill, session, stores

from jobwire import State, Worker
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.work import work
from jobwire.sync import Queue

CONCURRENCY = 50
PROTOCOLS = ("bullmq", "pgboss")


async def no_op(job: Any) -> None: ...


async def one_ms(job: Any) -> None:
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass


HANDLERS: dict[str, Callable[[Any], Any]] = {"no_op": no_op, "one_ms": one_ms}


def measure(folder: Path, jobs: int) -> list[dict[str, Any]]:
    """A row per protocol and handler: runs per second from a worker's start to its end, without Spark's own time."""
    with stores(folder) as places:
        plain = {
            (protocol, kind): apart(_plain, places[protocol], f"plain-{kind}", kind, jobs)
            for protocol in PROTOCOLS
            for kind in HANDLERS
        }
        fleets = apart(_fleets, folder, {protocol: places[protocol] for protocol in PROTOCOLS}, jobs)
    return [
        {"protocol": protocol, "kind": kind, "jobs": jobs, "plain": rate, **fleets[protocol, kind]}
        for (protocol, kind), rate in plain.items()
    ]


def _plain(url: str, queue: str, kind: str, jobs: int) -> float:
    fill(url, queue, jobs)
    worker = Worker(queue, HANDLERS[kind], url, concurrency=CONCURRENCY)
    began = time.perf_counter()
    asyncio.run(worker.run_until_idle())
    seconds = time.perf_counter() - began
    _all_done(url, queue, jobs)
    return jobs / seconds


def _fleets(folder: Path, places: dict[str, str], jobs: int) -> dict[tuple[str, str], dict[str, float]]:
    found: dict[tuple[str, str], dict[str, float]] = {}
    with session(2) as spark:
        lake = Lake(str(folder / "lake"))
        for protocol, url in places.items():
            for kind, handler in HANDLERS.items():
                found[protocol, kind] = {}
                for tasks in (1, 2):
                    queue = f"fleet-{kind}-{tasks}"
                    fill(url, queue, jobs)
                    began = time.perf_counter()
                    result = work(spark, lake, queue, handler, url, tasks=tasks, concurrency=CONCURRENCY)
                    whole = time.perf_counter() - began
                    _all_done(url, queue, jobs)
                    assert result.completed == jobs, result
                    found[protocol, kind] |= {f"{tasks}": result.rate, f"{tasks}_whole": whole}
                    print(f"work {protocol} {kind} {tasks}: {result.rate:,.0f}/s, {whole:.1f} s in all", flush=True)
    return found


def _all_done(url: str, queue: str, jobs: int) -> None:
    with Queue(queue, url) as there:
        counts = there.counts()
    assert counts[State.COMPLETED] == jobs, (url, queue, counts)
