"""The benchmark of `jobwire worker --processes`: throughput on BullMQ with one process and with two.

    python bench/processes.py [--jobs 20000] [--results bench/results]

Each worker finds a full queue. Its throughput is measured between two counts of completed jobs, so that the start of
the processes is not part of it. Writes `processes.json` and `processes.md` into the results folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from redis import Redis

from jobwire import NewJob, Queue, embedded

HANDLERS = """
import time

async def no_op(job): ...

async def one_ms(job):
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass
"""
KINDS = {"no_op": "a handler that does nothing", "one_ms": "1 ms of CPU per job"}
CONCURRENCY = 50


async def _fill(url: str, jobs: int) -> None:
    async with Queue("bench", url) as queue:
        for first in range(0, jobs, 10_000):
            await queue.add_many([NewJob({"n": n}, "job") for n in range(first, min(first + 10_000, jobs))])


def rate(url: str, handler: str, processes: int, jobs: int, folder: str) -> float:
    """Completed jobs per second, from the first tenth of the jobs to the last."""
    redis = Redis.from_url(url)
    redis.flushall()
    asyncio.run(_fill(f"bullmq+{url}", jobs))
    command = [sys.executable, "-m", "jobwire", "worker", f"handlers:{handler}", "--queue", "bench", "--json"]
    command += [f"--url=bullmq+{url}", f"--concurrency={CONCURRENCY}", f"--processes={processes}"]
    worker = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    seen: list[tuple[float, int]] = []
    while not seen or seen[-1][1] < jobs * 9 // 10:
        time.sleep(0.02)
        seen.append((time.perf_counter(), redis.zcard("bull:bench:completed")))  # type: ignore[arg-type]
        if worker.poll() is not None:
            raise RuntimeError(f"the worker ended with exit code {worker.returncode}")
    worker.send_signal(signal.SIGTERM)
    worker.wait(timeout=60)
    begun = next(one for one in seen if one[1] >= jobs // 10)
    return (seen[-1][1] - begun[1]) / (seen[-1][0] - begun[0])


def markdown(results: dict[str, Any]) -> str:
    lines = ["# One process and two", ""]
    lines.append(
        f"`jobwire worker --processes N --concurrency {CONCURRENCY}` on BullMQ; one Valkey without persistence, which "
        f"shares {results['cpus']} CPUs with the workers. One run, jobs per second."
    )
    lines += [f"Load average of the machine when the run began and ended: {results['load']}.", ""]
    lines += ["| | 1 process | 2 processes | times one |", "|---|---:|---:|---:|"]
    for kind, rates in results["rates"].items():
        one, two = rates["1"], rates["2"]
        lines.append(f"| {KINDS[kind]} | {one:,.0f} | {two:,.0f} | {two / one:.2f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="one worker process and two")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rates: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, embedded.valkey(folder, durable=False) as server:
        (Path(folder) / "handlers.py").write_text(HANDLERS)
        for kind in KINDS:
            for processes in (1, 2):
                jobs = options.jobs * (2 if kind == "no_op" else 1)
                rates.setdefault(kind, {})[str(processes)] = found = rate(server.url, kind, processes, jobs, folder)
                print(kind, processes, f"{found:,.0f}/s", flush=True)
    results = {"cpus": os.cpu_count(), "load": f"{load:.1f} and {os.getloadavg()[0]:.1f}", "rates": rates}
    target = Path(options.results)
    target.mkdir(parents=True, exist_ok=True)
    (target / "processes.json").write_text(json.dumps(results, indent=1) + "\n")
    text = markdown(results)
    (target / "processes.md").write_text(text)
    print(f"\n{text}\nwritten to {target}/processes.json and .md")


if __name__ == "__main__":
    main()
