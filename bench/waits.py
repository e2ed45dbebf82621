"""How long a job waits for an idle worker on each store: from its add to its handler, and from the time it is due.

    python -m bench.waits [--rounds 5] [--jobs 60] [--only monque] [--results bench/results]

Writes `waits.json` and `waits.md`. The stores take turns, one after the other, so that none runs while another is
measured. A wait for an added job begins before the call of `add`, which is then part of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.machine import processor

from jobwire import Queue, Worker, connect, embedded

QUEUE = "waits"
IDLE = 0.02
"""Seconds between two jobs, so that the worker waits again."""
DELAYS = (0.05, 0.2)
"""Bounds of the delays, so that the times at which jobs are due have no rhythm."""
WARMUP = 5
STORES: dict[str, Callable[..., Any]] = {
    "bullmq": embedded.valkey,
    "bridgemq": embedded.valkey,
    "pgboss": embedded.postgres,
    "monque": embedded.mongo,
}


@dataclass(frozen=True)
class Waits:
    """Milliseconds that jobs of one round have waited, in ascending order."""

    added: list[float]
    due: list[float]


def main() -> None:
    options = _options()
    chosen = options.only or list(STORES)
    rounds: dict[str, list[Waits]] = {protocol: [] for protocol in chosen}
    for number in range(options.rounds):
        for protocol in chosen:
            with tempfile.TemporaryDirectory() as folder, STORES[protocol](folder, durable=False) as server:
                waits = asyncio.run(_measure(f"{protocol}+{server.url}", options.jobs))
            rounds[protocol].append(waits)
            shown = f"added {statistics.median(waits.added):.2f} ms, due {statistics.median(waits.due):.2f} ms"
            print(f"round {number + 1}  {protocol:<9} {shown}, at worst {waits.due[-1]:.2f} ms", flush=True)
    _write(Path(options.results), rounds, options)


async def _measure(url: str, jobs: int) -> Waits:
    began: asyncio.Queue[float] = asyncio.Queue()

    async def note(_: Any) -> None:
        began.put_nowait(time.time())

    # The producer has a connection of its own: one that it shared with the worker could wake it without the store.
    async with connect(url) as connection, Queue(QUEUE, url) as queue:
        worker = Worker(QUEUE, note, connection, concurrency=10)
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run(signals=False))
            added = [await _added(queue, began) for _ in range(jobs + WARMUP)]
            due = [await _due(queue, began) for _ in range(jobs + WARMUP)]
            await worker.stop()
    return Waits(*(sorted(round(1000 * wait, 3) for wait in found[WARMUP:]) for found in (added, due)))


async def _added(queue: Queue, began: asyncio.Queue[float]) -> float:
    await asyncio.sleep(IDLE)
    asked = time.time()
    await queue.add(1)
    return await began.get() - asked


async def _due(queue: Queue, began: asyncio.Queue[float]) -> float:
    await asyncio.sleep(IDLE)
    when = datetime.now(UTC) + timedelta(seconds=random.uniform(*DELAYS))
    await queue.add(1, run_at=when)
    return await began.get() - when.timestamp()


def _write(folder: Path, rounds: dict[str, list[Waits]], options: argparse.Namespace) -> None:
    about = {
        "machine": processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "rounds": options.rounds,
        "jobs": options.jobs,
        "load": round(os.getloadavg()[0], 1),
    }
    table = {protocol: _figures(found) for protocol, found in rounds.items()}
    lines = [
        "# Waits of jobs for an idle worker",
        "",
        f"{about['machine']}, worker, producer and server on {about['cpus']} shared CPUs (load {about['load']} at the "
        f"end), Python {about['python']}; {about['rounds']} rounds of {about['jobs']} jobs, the stores in turns. "
        "Milliseconds: the median of the rounds' medians, in brackets the best and the worst round's; p99 and the "
        "longest of all jobs.",
        "",
        "| | add to handler start | p99 | due to handler start | p99 | longest |",
        "|---|---:|---:|---:|---:|---:|",
        *(f"| {protocol} | {' | '.join(cells)} |" for protocol, cells in table.items()),
    ]
    text = "\n".join(lines) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    runs = {protocol: [vars(waits) for waits in found] for protocol, found in rounds.items()}
    (folder / "waits.json").write_text(json.dumps({"about": about, "table": table, "runs": runs}, indent=1) + "\n")
    (folder / "waits.md").write_text(text)
    print(f"\n{text}")


def _figures(found: list[Waits]) -> list[str]:
    added, due = [one.added for one in found], [one.due for one in found]
    return [_medians(added), _p99(added), _medians(due), _p99(due), f"{max(one[-1] for one in due):.1f}"]


def _medians(rounds: list[list[float]]) -> str:
    medians = sorted(statistics.median(one) for one in rounds)
    return f"{statistics.median(medians):.2f} ({medians[0]:.2f} to {medians[-1]:.2f})"


def _p99(rounds: list[list[float]]) -> str:
    waits = sorted(wait for one in rounds for wait in one)
    return f"{waits[round(0.99 * (len(waits) - 1))]:.1f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Waits of jobs for an idle worker, on each store")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=60)
    parser.add_argument("--only", action="append", choices=list(STORES))
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
