"""BridgeMQ: throughput with and without routing, and the cost of a claim against the backlog.

    python -m bench.bridgemq [--quick] [--rounds 3] [--results bench/results]

Writes `bridgemq.json`, `bridgemq.md` and `bridgemq.svg`. Nothing is asserted about timings, only that all was done.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from bench.bridgemq import backlog, picture, throughput
from bench.machine import processor

from jobwire import embedded

JOBS = 20_000


def main() -> None:
    options = _options()
    jobs = JOBS // 10 if options.quick else JOBS
    load = os.getloadavg()[0]
    sizes = list(backlog.SIZES[:3] if options.quick else backlog.SIZES)
    with tempfile.TemporaryDirectory() as folder, embedded.valkey(folder, durable=False) as server:
        results = asyncio.run(_measure(server.url, jobs, sizes, options.rounds))
    results["about"] = {
        "load": round(load, 1),
        "machine": processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "rounds": options.rounds,
        "jobs": jobs,
    }
    _write(Path(options.results), sizes, results)


async def _measure(server: str, jobs: int, sizes: list[int], rounds: int) -> dict[str, Any]:
    runs: dict[str, list[dict[str, float]]] = {setting.name: [] for setting in throughput.SETTINGS}
    for number in range(rounds):
        for setting in throughput.SETTINGS:
            runs[setting.name].append(await throughput.run(server, setting, jobs))
            print(f"round {number + 1}  {setting.name:<12} {runs[setting.name][-1]['run']:>10,.0f}/s", flush=True)
    curve: dict[str, dict[str, list[float]]] = {}
    for place in backlog.PLACES:
        costs = [await backlog.measure(server, size, place) for size in sizes]
        curve[place] = {str(together): [cost[together] for cost in costs] for together in backlog.CLAIMS}
        print(place, curve[place], flush=True)
    table = {name: {key: median(run[key] for run in each) for key in each[0]} for name, each in runs.items()}
    return {"table": table, "runs": runs, "curve": curve, "sizes": sizes}


def _write(folder: Path, sizes: list[int], results: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = {
        f"{together} at once, {backlog.PLACES[place]}": values
        for place, each in results["curve"].items()
        for together, values in each.items()
    }
    text = _markdown(sizes, lines, results)
    (folder / "bridgemq.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "bridgemq.md").write_text(text)
    (folder / "bridgemq.svg").write_text(picture.draw(sizes, lines, "BridgeMQ: a claim beside jobs for others"))
    print(f"\n{text}\nwritten to {folder}/bridgemq.json, .md and .svg")


def _markdown(sizes: list[int], lines: dict[str, list[float]], results: dict[str, Any]) -> str:
    about = results["about"]
    text = [
        "# BridgeMQ: routing and backlog",
        "",
        f"One Valkey without persistence, {about['cpus']} CPUs shared by client and server (load {about['load']} "
        f"before, so read ratios and the shape of the curve, not absolute figures), Python {about['python']}. "
        f"{about['jobs']:,} no-op jobs, one worker of concurrency {throughput.CONCURRENCY}; medians of "
        f"{about['rounds']} rounds, a gain is the median of the rounds' own ratios. The last row is the spec's own "
        "way, written from its description: a script call claims one job, others finish it.",
        "",
        "| | run | times spec-style | added | server µs/job | client µs/job | script calls |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for setting in throughput.SETTINGS:
        row = results["table"][setting.name]
        text.append(
            f"| {setting.title} | {row['run']:,.0f}/s | {_gain(results['runs'], setting.name):.1f}× "
            f"| {row['added']:,.0f}/s "
            f"| {row['server_us']:.0f} | {row['client_us']:.0f} | {row['calls']:,.0f} |"
        )
    text += ["", "## A claim beside jobs for others: µs inside the server, lower quartile", ""]
    text += [f"| claimed | {' | '.join(f'{size:,}' for size in sizes)} |", f"|---|{'---:|' * len(sizes)}"]
    text += [f"| {name} | {' | '.join(f'{value:,.0f}' for value in values)} |" for name, values in lines.items()]
    text += [
        "",
        "What grows is the walk to a place inside the list (about 2 µs a job at 50,000 from its nearer end) and, with "
        "the logarithm, the index. Jobs taken out of the midst leave marks there, which one pass over the list removes "
        "when they make up a 64th of it: 1 to 3 µs a job at any backlog, though all at once, so that beside 100,000 "
        "others one claim of 50 in thirty took about 10 ms.",
        "",
        "The spec-style script looks at the first 100 ids only: beyond that it finds none of them, ever.",
        "",
    ]
    return "\n".join(text)


def _gain(runs: dict[str, list[dict[str, float]]], name: str) -> float:
    """What else the machine does slows all runs of a round alike."""
    pairs = zip(runs[name], runs["spec_style"], strict=True)
    return median(ours["run"] / theirs["run"] for ours, theirs in pairs)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="BridgeMQ: routing and backlog")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", default=str(Path(__file__).parents[1] / "results"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
