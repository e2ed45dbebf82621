"""The benchmark of what `run.py` leaves out: deep queues, flows, schedulers, and the library beside its bare scripts.

    python bench/depth.py [--quick] [--rounds 3] [--results bench/results]

Writes `bullmq-depth.json` and `bullmq-depth.md` into the results folder. Nothing is asserted about timings.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bullmq import overhead
from bench.bullmq.contenders import CLIENTS, NODE
from redis import Redis

from jobwire import NewJob, Queue, embedded
from jobwire.boundary import ConsumerSettings

SIDES = {
    "jobwire": (sys.executable, str(CLIENTS / "paths.py")),
    "Node 5.62": (str(NODE), str(CLIENTS / "paths.mjs"), "bullmq"),
}
CHILDREN = 5


class Bench:
    def __init__(self, url: str, scale: float, rounds: int) -> None:
        self.url, self.scale, self.rounds = url, scale, rounds
        self.redis = Redis.from_url(url)

    def jobs(self, full: int) -> int:
        return max(1000, int(full * self.scale))

    def call(self, side: str, path: str, **order: Any) -> list[float]:
        text = json.dumps({"url": self.url, "path": path, "chunk": 100, "concurrency": 100, **order})
        done = subprocess.run([*SIDES[side], text], capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{side} failed on {path}:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout.splitlines()[-1])["seconds"]

    def measured(self, side: str, path: str, **order: Any) -> dict[str, float]:
        """The client's median and the mean inside the server, which the machine's other work disturbs less."""
        self.redis.config_resetstat()
        seconds = self.call(side, path, **order)
        stats = self.redis.info("commandstats")
        scripts = [stats[name] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats]
        inside = sum(one["usec"] for one in scripts) / sum(one["calls"] for one in scripts) / 1000
        return {"ms": _ms(seconds), "worst_ms": max(seconds) * 1000, "server_ms": inside}

    def fill(self, jobs: int, *, claim: bool = False) -> None:
        self.redis.flushall()
        asyncio.run(_fill(f"bullmq+{self.url}", jobs, claim))

    def stalled(self, active: int) -> dict[str, Any]:
        """Milliseconds of one check: all alive, and all dead at once."""
        found: dict[str, Any] = {}
        for side in SIDES:
            self.fill(active, claim=True)
            self.call(side, "stalled", rounds=1)
            alive = self.measured(side, "stalled", rounds=15)
            dead: list[dict[str, float]] = []
            for _ in range(self.rounds):
                self.fill(active, claim=True)
                self.call(side, "stalled", rounds=1)
                for first in range(0, active, 1000):
                    self.redis.delete(*(f"bull:bench:{n}:lock" for n in range(first + 1, first + 1001)))
                dead.append(self.measured(side, "stalled", rounds=1))
            found[side] = {"alive": alive, "dead": min(dead, key=lambda one: one["ms"])}
        return found

    def claims(self, depths: list[int]) -> dict[str, Any]:
        """Milliseconds of one claim, of one job and of a hundred, by how many jobs wait."""
        found: dict[str, Any] = {}
        for depth in depths:
            self.fill(depth)
            found[str(depth)] = {
                "jobwire, 1 job": self.measured("jobwire", "claim", rounds=200, batch=1),
                "Node 5.62, 1 job": self.measured("Node 5.62", "claim", rounds=200),
                "jobwire, 100 jobs": self.measured("jobwire", "claim", rounds=5, batch=100),
            }
        return found

    def paths(self) -> dict[str, Any]:
        """Per second: trees, and schedulers, added and run."""
        trees, schedules = self.jobs(1000), self.jobs(2000)
        runs: dict[str, dict[str, list[float]]] = {}
        for turn in range(self.rounds):
            for side in list(SIDES) if turn % 2 == 0 else list(SIDES)[::-1]:
                for prefix, number, add, run in (
                    ("flow", trees, {"children": CHILDREN}, {}),
                    ("schedule", schedules, {}, {}),
                ):
                    self.redis.flushall()
                    [added] = self.call(side, f"{prefix}_{'add' if prefix == 'flow' else 'put'}", jobs=number, **add)
                    runs.setdefault(f"{prefix}: add", {}).setdefault(side, []).append(number / added)
                    # What is run was added by Node, for both alike.
                    self.redis.flushall()
                    self.call("Node 5.62", f"{prefix}_{'add' if prefix == 'flow' else 'put'}", jobs=number, **add)
                    [ran] = self.call(side, f"{prefix}_run", jobs=number, **run)
                    runs.setdefault(f"{prefix}: run", {}).setdefault(side, []).append(number / ran)
                    print(
                        turn + 1, prefix, side, f"{number / added:,.0f}/s added, {number / ran:,.0f}/s run", flush=True
                    )
        return {path: {side: statistics.median(rates) for side, rates in sides.items()} for path, sides in runs.items()}


async def _fill(url: str, jobs: int, claim: bool) -> None:
    async with Queue("bench", url) as queue:
        for first in range(0, jobs, 10_000):
            await queue.add_many([NewJob({"n": n}, "job") for n in range(first, min(first + 10_000, jobs))])
        if claim:
            consumer = queue.connection.backend.consumer(ConsumerSettings("bench", "filler", lease=600.0))
            for _ in range(0, jobs, 1000):
                await consumer.settle([], 1000)


def _ms(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000


def _shown(one: dict[str, float]) -> str:
    return f"{one['ms']:.2f} ms ({one['server_ms']:.3f})"


def markdown(results: dict[str, Any]) -> str:
    lines = ["# Deep queues, flows, schedulers, and the library beside its scripts", ""]
    lines.append(f"One Valkey without persistence; client and server share {results['cpus']} CPUs. Medians.")
    lines += [f"Load average of the machine when the run began and ended: {results['load']}.", ""]
    lines += [f"## One check for stalled jobs, {results['active']:,} jobs active", ""]
    lines += ["In brackets: the part inside the server.", ""]
    lines += ["| | all alive | the slowest of 15 | all dead at once |", "|---|---:|---:|---:|"]
    for side, one in results["stalled"].items():
        lines.append(f"| {side} | {_shown(one['alive'])} | {one['alive']['worst_ms']:.1f} ms | {_shown(one['dead'])} |")
    lines += ["", "## One claim, by how many jobs wait", ""]
    kinds = list(next(iter(results["claims"].values())))
    lines += ["| waiting | " + " | ".join(kinds) + " |", "|---:|" + "---:|" * len(kinds)]
    for depth, row in results["claims"].items():
        lines.append(f"| {int(depth):,} | " + " | ".join(_shown(row[kind]) for kind in kinds) + " |")
    lines += ["", f"## Flows (a root and {CHILDREN} children) and schedulers, per second", ""]
    lines += ["| | jobwire | Node 5.62 | times Node |", "|---|---:|---:|---:|"]
    for path, row in results["paths"].items():
        ours, theirs = row["jobwire"], row["Node 5.62"]
        lines.append(f"| {path} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |")
    lines += ["", "## The library beside its own scripts, called by hand", ""]
    lines += ["| | one call per job, pipelined | library | takes longer by | whole batches | takes longer by |"]
    lines += ["|---|---:|---:|---:|---:|---:|"]
    for name, row in results["overhead"].items():
        pipelined = f"{row['pipelined_per_s']:,.0f}/s | {row['library_per_s']:,.0f}/s"
        longer = f"{row['longer_than_pipelined_percent']:.0f} %"
        batched = f"{row['batched_per_s']:,.0f}/s | {row['longer_than_batched_percent']:.0f} %"
        lines.append(f"| {name} | {pipelined} | {longer} | {batched} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description="deep queues, flows, schedulers, overhead")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    options = parser.parse_args()
    scale = 0.1 if options.quick else 1.0
    with tempfile.TemporaryDirectory() as folder, embedded.valkey(folder, durable=False) as server:
        bench = Bench(server.url, scale, options.rounds)
        active = bench.jobs(10_000)
        load = os.getloadavg()[0]
        results: dict[str, Any] = {
            "active": active,
            "cpus": os.cpu_count(),
            "paths": bench.paths(),
            "stalled": bench.stalled(active),
            "overhead": asyncio.run(overhead.measure(server.url, bench.jobs(20_000), options.rounds)),
            "claims": bench.claims([1000, bench.jobs(1_000_000)]),
        }
        results["load"] = f"{load:.1f} and {os.getloadavg()[0]:.1f}"
    folder = Path(options.results)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bullmq-depth.json").write_text(json.dumps(results, indent=1) + "\n")
    text = markdown(results)
    (folder / "bullmq-depth.md").write_text(text)
    print(f"\n{text}\nwritten to {folder}/bullmq-depth.json and .md")


if __name__ == "__main__":
    main()
