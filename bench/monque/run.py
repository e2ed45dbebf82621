"""Claim and drain, no-op jobs, at several concurrencies: jobwire beside the peer's way of claiming.

    python bench/monque/run.py [--quick] [--rounds 5] [--results bench/results]

Writes `monque.json` and `monque.md`. Nothing is asserted about timings; that all jobs were completed is checked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.machine import processor
from bench.monque.contenders import CONTENDERS, QUEUE
from pymongo import MongoClient

from jobwire import NewJob, Queue, embedded

JOBS = {1: 600, 10: 3000, 100: 6000}
# The peer completes about ten jobs per slot and second: as many as take a few seconds tell its rate.
PEERS_JOBS = {1: 40, 10: 400, 100: 3000}
DATABASE = "bench"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", default=str(Path(__file__).parents[1] / "results"))
    options = parser.parse_args()
    part = 0.2 if options.quick else 1.0
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, embedded.mongo(folder, durable=False) as server:
        rates = _rounds(server.url, 1 if options.quick else options.rounds, part)
    results = {"about": _about(options.rounds, load), "rates": rates}
    _write(Path(options.results), results)


def _rounds(url: str, rounds: int, part: float) -> dict[str, dict[str, list[float]]]:
    """In every round each contender drains each queue once; the one that begins changes from round to round."""
    names = list(CONTENDERS)
    rates: dict[str, dict[str, list[float]]] = {str(c): {name: [] for name in names} for c in JOBS}
    for number in range(rounds):
        first = number % len(names)
        for concurrency in JOBS:
            for name in [*names[first:], *names[:first]]:
                total = round((PEERS_JOBS if name == "peer" else JOBS)[concurrency] * part)
                rate = asyncio.run(_drain(url, name, concurrency, total))
                rates[str(concurrency)][name].append(rate)
                print(f"round {number + 1}  concurrency {concurrency:<4} {name:<15} {rate:>9,.0f}/s", flush=True)
    return rates


async def _drain(url: str, name: str, concurrency: int, total: int) -> float:
    with MongoClient[dict[str, Any]](url) as client:
        client.drop_database(DATABASE)
        async with Queue(QUEUE, "monque+" + url.replace("/?", f"/{DATABASE}?")) as queue:
            await queue.add_many([NewJob({"n": n}) for n in range(total)])
        took = await CONTENDERS[name](url, DATABASE, concurrency, total)
        completed = client[DATABASE]["monque_jobs"].count_documents({"status": "completed"})
    if completed != total:
        raise RuntimeError(f"{name}: {completed} of {total} jobs completed")
    return total / took


def _about(rounds: int, load: float) -> dict[str, Any]:
    return {
        "server": "MongoDB 6.0, a replica set of one, write concern majority",
        "machine": processor(),
        "cpus": os.cpu_count(),
        "load": round(load, 1),
        "rounds": rounds,
        "python": platform.python_version(),
        "pymongo": metadata.version("pymongo"),
    }


def _write(folder: Path, results: dict[str, Any]) -> None:
    about, rates = results["about"], results["rates"]
    lines = [
        "# Monque: claim and drain",
        "",
        f"No-op jobs, one process each, {about['server']}, {about['cpus']} CPUs shared by server and client "
        f"(load {about['load']} before; the gains vary with it), Python "
        f"{about['python']}, pymongo {about['pymongo']}; medians of {about['rounds']} rounds, "
        "contenders in turns; a gain is the median of the rounds' own ratios.",
        "",
        "| concurrency | peer (jobs/s) | peer, no waits | jobwire | to peer | to peer, no waits |",
        "|---|---|---|---|---|---|",
    ]
    for concurrency, found in rates.items():
        peer, eager, ours = (statistics.median(found[name]) for name in CONTENDERS)
        gains = [_gain(found["jobwire"], found[name]) for name in ("peer", "peer, no waits")]
        shown = " | ".join(f"{gain:.1f}×" for gain in gains)
        lines.append(f"| {concurrency} | {peer:,.0f} | {eager:,.0f} | {ours:,.0f} | {shown} |")
    lines += [
        "",
        "`peer`: one findOneAndUpdate per job for all free slots in parallel, the next poll 100 ms after a job ended, "
        "as the peer does. `peer, no waits`: the same calls, each slot claiming again at once. Both in Python on the "
        "same driver, so that the way of claiming is what differs.",
    ]
    text = "\n".join(lines) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "monque.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "monque.md").write_text(text)
    print(f"\n{text}")


def _gain(ours: list[float], theirs: list[float]) -> float:
    """The median of the rounds' own ratios: what else the machine does slows both sides of a round alike."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


if __name__ == "__main__":
    main()
