"""What a job costs in processor time: of this client and of the server, in microseconds, for one or more source trees.

    python bench/cpu.py [--tree src --tree ../older/src] [--case drain ...] [--rounds 7]

The trees take turns on the same servers, each run in a process of its own, so that two versions of jobwire can be
compared on a machine that is not quiet. Shows the least and the median of the rounds. Nothing is written.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from jobwire import NewJob, Queue, Worker, connect, embedded

ROOT = Path(__file__).parents[1]
QUEUE = "cpu"
CASES: dict[str, tuple[str, int, int]] = {
    "drain": ("bullmq", 20_000, 100),
    "drain_10": ("bullmq", 10_000, 10),
    "bulk": ("bullmq", 20_000, 0),
    "pg_drain": ("pgboss", 20_000, 100),
    "pg_bulk": ("pgboss", 20_000, 0),
    "monque_10": ("monque", 3000, 10),
}
"""By name: the protocol, how many jobs, and how many run at once (0: they are only added)."""


class Finish:
    """An observer that sets `done` when so many jobs have been settled."""

    def __init__(self, jobs: int) -> None:
        self.left = jobs
        self.done = asyncio.Event()

    def started(self, *_: Any) -> None: ...

    def settled(self, *_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            self.done.set()


async def run(url: str, pid: int, jobs: int, concurrency: int) -> dict[str, float]:
    """Runs one case in this process. Returns microseconds per job."""

    async def add(queue: Queue) -> None:
        for first in range(0, jobs, 1000):
            await queue.add_many([NewJob({"n": n}) for n in range(first, min(first + 1000, jobs))])

    async def nothing(job: Any) -> None: ...

    async with connect(url) as connection, Queue(QUEUE, connection) as queue:
        await queue.admin.obliterate(force=True)
        await queue.add({"n": -1})
        await queue.admin.drain()
        if concurrency:
            await add(queue)
        gc.collect()
        gc.freeze()
        server, client, wall = cpu_of(pid), time.process_time(), time.perf_counter()
        if concurrency:
            finish = Finish(jobs)
            async with Worker(QUEUE, nothing, connection, concurrency=concurrency, observers=[finish]):
                await finish.done.wait()
                took = time.process_time() - client, cpu_of(pid) - server, time.perf_counter() - wall
        else:
            await add(queue)
            took = time.process_time() - client, cpu_of(pid) - server, time.perf_counter() - wall
    return {name: seconds / jobs * 1e6 for name, seconds in zip(("client", "server", "wall"), took, strict=True)}


def cpu_of(pid: int) -> float:
    """Returns the processor seconds of a process and of its children that still run."""
    own = [pid]
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    own.append(int(folder.name))
            except OSError:
                continue
    threads = [thread for one in own for thread in Path(f"/proc/{one}/task").glob("*/schedstat")]
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def main() -> None:
    options = _options()
    if options.inside:
        print(json.dumps(asyncio.run(run(**json.loads(options.inside)))))
        return
    start = {"bullmq": embedded.valkey, "pgboss": embedded.postgres, "monque": embedded.mongo}
    trees = options.tree or [str(ROOT / "src")]
    cases = options.case or list(CASES)
    with ExitStack() as stack:
        servers: dict[str, Any] = {}
        for protocol in {CASES[case][0] for case in cases}:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            servers[protocol] = stack.enter_context(start[protocol](folder, durable=False))
        for case in cases:
            protocol, jobs, concurrency = CASES[case]
            server = servers[protocol]
            url = f"{protocol}+" + (server.url.replace("/?", "/cpu?") if protocol == "monque" else server.url)
            order = {"url": url, "pid": server.pid, "jobs": jobs, "concurrency": concurrency}
            found: dict[str, list[dict[str, float]]] = {tree: [] for tree in trees}
            for _ in range(options.rounds):
                for tree in trees:
                    found[tree].append(_in_process(tree, order))
            for tree, rounds in found.items():
                cells = [_shown(name, [one[name] for one in rounds]) for name in ("client", "server", "wall")]
                print(f"{case:<10} {tree:<40} " + "  ".join(cells), flush=True)


def _in_process(tree: str, order: dict[str, Any]) -> dict[str, float]:
    command = [sys.executable, __file__, "--inside", json.dumps(order)]
    environment = {**os.environ, "PYTHONPATH": str(Path(tree).resolve())}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def _shown(name: str, figures: list[float]) -> str:
    return f"{name} {min(figures):6.2f} {statistics.median(figures):6.2f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Processor time per job")
    parser.add_argument("--tree", action="append", help="a folder that holds the package jobwire; may be repeated")
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
