"""Measures a store: adds one by one and in bulk, runs, and the time from an add to its run."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from dataclasses import asdict, dataclass, field
from typing import Any

from jobwire.cli.output import remark
from jobwire.connection import Connection
from jobwire.errors import JobwireError
from jobwire.options import NewJob
from jobwire.queue import Queue
from jobwire.worker import ActiveJob, Worker

_BULK = 500
_MOST_JOBS = 50_000
_SAMPLES = 200


@dataclass(slots=True)
class Figures:
    """The results. Rates are per second, times in milliseconds."""

    adds: float = 0.0
    bulk_adds: float = 0.0
    runs: float = 0.0
    jobs: int = 0
    add_ms: list[float] = field(default_factory=list[float])
    start_ms: list[float] = field(default_factory=list[float])

    def record(self) -> dict[str, Any]:
        """Returns the results as JSON values."""
        numbers = asdict(self)
        for name in ("add_ms", "start_ms"):
            times = numbers.pop(name)
            numbers[name] = {"median": _share(times, 0.5), "p99": _share(times, 0.99), "samples": len(times)}
        return {**numbers, **{name: round(numbers[name], 1) for name in ("adds", "bulk_adds", "runs")}}

    def rows(self) -> list[tuple[str, str]]:
        """Returns the results in words."""
        return [
            ("add, one after the other", f"{self.adds:,.0f} /s"),
            ("  time of one", _spread(self.add_ms)),
            (f"add, {_BULK} at a time", f"{self.bulk_adds:,.0f} /s"),
            ("run", f"{self.runs:,.0f} /s"),
            ("from an add to its start", _spread(self.start_ms)),
            ("jobs in all", f"{self.jobs:,}"),
        ]


async def measure(connection: Connection, seconds: float, concurrency: int) -> Figures:
    """Measures within about so many seconds, in a queue of its own that is deleted in the end, also after Ctrl-C."""
    name = f"jobwire-bench-{uuid.uuid4().hex[:8]}"
    figures = Figures()
    try:
        async with Queue(name, connection) as queue:
            await _one_by_one(queue, figures, seconds * 0.2)
            await _in_bulk(queue, figures, seconds * 0.2)
            await _run(queue, figures, seconds * 0.4, concurrency)
            await _latency(queue, figures, seconds * 0.2)
    finally:
        try:
            await connection.drop_queue(name)
        except JobwireError as error:
            remark(f"the queue {name} could not be deleted ({error}): jobwire obliterate {name} --force --yes")
    return figures


async def _one_by_one(queue: Queue, figures: Figures, seconds: float) -> None:
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        start = time.perf_counter()
        await queue.add({"n": figures.jobs})
        figures.add_ms.append((time.perf_counter() - start) * 1000)
        figures.jobs += 1
    figures.adds = len(figures.add_ms) / passed


async def _in_bulk(queue: Queue, figures: Figures, seconds: float) -> None:
    began, added = time.perf_counter(), 0
    while time.perf_counter() - began < seconds and figures.jobs < _MOST_JOBS:
        await queue.add_many([NewJob({"n": number}) for number in range(_BULK)])
        added += _BULK
        figures.jobs += _BULK
    figures.bulk_adds = added / (time.perf_counter() - began)


async def _run(queue: Queue, figures: Figures, seconds: float, concurrency: int) -> None:
    """Runs what was added, until all is done or the time is over. Counts from the first run to the last."""
    times: list[float] = []
    all_done = asyncio.Event()

    async def handle(job: ActiveJob) -> None:
        times.append(time.perf_counter())
        if len(times) >= figures.jobs:
            all_done.set()

    async with Worker(queue.name, handle, queue.connection, concurrency=concurrency):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(all_done.wait(), seconds)
    if len(times) > 1:
        figures.runs = (len(times) - 1) / max(times[-1] - times[0], 0.000_001)


async def _latency(queue: Queue, figures: Figures, seconds: float) -> None:
    """Adds single jobs to the empty queue and measures until the handler has begun."""
    await queue.admin.drain()
    started = asyncio.Event()

    async def handle(job: ActiveJob) -> None:
        started.set()

    began = time.perf_counter()
    async with Worker(queue.name, handle, queue.connection, concurrency=1):
        while (left := began + seconds - time.perf_counter()) > 0 and len(figures.start_ms) < _SAMPLES:
            started.clear()
            start = time.perf_counter()
            await queue.add({"n": 0})
            figures.jobs += 1
            try:
                await asyncio.wait_for(started.wait(), left)
            except TimeoutError:
                return
            figures.start_ms.append((time.perf_counter() - start) * 1000)


def _share(times: list[float], share: float) -> float | None:
    """Returns the time that this share of the samples does not exceed."""
    return round(sorted(times)[min(len(times) - 1, int(len(times) * share))], 3) if times else None


def _spread(times: list[float]) -> str:
    if not times:
        return "no sample in this time"
    return f"{_share(times, 0.5):.1f} ms median, {_share(times, 0.99):.1f} ms p99"
