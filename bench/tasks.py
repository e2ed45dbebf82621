"""The cost of typed tasks: CPU time of the client for a no-op task, beside a plain handler and a plain `Queue.add`.

    python bench/tasks.py [--jobs 20000] [--rounds 5] [--results bench/results]

The two sides run in turns in one process, at concurrency 100, on one embedded Valkey. CPU time is the process's own, so
that the machine's other work disturbs it little. Writes `tasks.json` and `tasks.md`. Nothing is asserted about timings.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jobwire import ActiveJob, App, NewJob, Queue, Worker, embedded

CONCURRENCY = 100


@dataclass
class Order:
    id: int
    to: str
    urgent: bool = False


async def plain(job: ActiveJob) -> None: ...


def make_app(url: str) -> App:
    app = App(url)

    @app.task
    async def no_op() -> None: ...

    @app.task
    async def named(id: int, to: str, urgent: bool = False) -> None: ...  # noqa: A002

    @app.task
    async def an_object(order: Order) -> None: ...

    return app


async def spent(work: Callable[[], Awaitable[Any]]) -> float:
    """Returns the seconds of CPU time that the call takes."""
    gc.collect()
    began = time.process_time()
    await work()
    return time.process_time() - began


async def add_plain(queue: Queue, data: Any, name: str, jobs: int) -> None:
    await queue.add_many([NewJob(data, name) for _ in range(jobs)])


async def working(worker: Worker) -> float:
    return await spent(worker.run_until_idle)


async def one_round(url: str, jobs: int) -> dict[str, float]:
    """Returns microseconds per job of every side."""
    found: dict[str, float] = {}
    app = make_app(url)
    data: dict[str, Any] = {
        "no_op": {},
        "named": {"id": 7, "to": "a@example.com", "urgent": False},
        "an_object": {"id": 7, "to": "a@example.com", "urgent": False},
    }
    async with app:
        for name, one in data.items():
            async with Queue(f"plain-{name}", app.connection) as queue:
                found[f"add {name}, plain"] = await spent(partial(add_plain, queue, one, name, jobs))
            found[f"run {name}, plain"] = await working(
                Worker(f"plain-{name}", plain, app.connection, concurrency=CONCURRENCY)
            )
            calls = [Order(**one) if name == "an_object" else one] * jobs
            found[f"add {name}, task"] = await spent(partial(app.tasks[name].add_many, calls))
            found[f"run {name}, task"] = await working(app.worker([name], concurrency=CONCURRENCY))
    return {key: seconds / jobs * 1e6 for key, seconds in found.items()}


def table(found: dict[str, float]) -> str:
    lines = ["| | plain | task | task / plain |", "|---|---:|---:|---:|"]
    for key in (one.removesuffix(", plain") for one in found if one.endswith(", plain")):
        without, with_task = found[f"{key}, plain"], found[f"{key}, task"]
        lines.append(f"| {key} | {without:.1f} µs | {with_task:.1f} µs | {with_task / without:.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, embedded.valkey(Path(folder), durable=False) as server:
        rounds: list[dict[str, float]] = []
        for number in range(given.rounds + 1):
            url = f"bullmq+{server.url}?prefix=bench{number}"
            rounds.append(asyncio.run(one_round(url, given.jobs)))
    medians = {key: statistics.median(one[key] for one in rounds[1:]) for key in rounds[0]}  # the first one warms up
    text = (
        "# Typed tasks beside plain handlers\n\n"
        f"CPU time of the client per job; median of {given.rounds} rounds of {given.jobs:,} jobs on BullMQ, workers "
        f"with concurrency {CONCURRENCY}. `add` is in bulk.\n\n{table(medians)}\n"
    )
    print(text)
    (given.results / "tasks.json").write_text(json.dumps(medians, indent=1) + "\n")
    (given.results / "tasks.md").write_text(text)


if __name__ == "__main__":
    main()
