"""The benchmark: every client library on one server, in one run, in turns.

    python bench/run.py [--quick] [--rounds 5] [--only process_100 --only latency] [--results bench/results]

Writes `bullmq.json`, `bullmq.md` and `bullmq.svg` into the results folder. Nothing is asserted about timings; what is
checked is that each contender did all of its work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.bullmq import contenders, memory, picture, summary
from bench.bullmq.race import Race
from bench.bullmq.scenarios import scenarios
from bench.machine import processor

from jobwire import embedded


def main() -> None:
    options = _options()
    chosen = [one for one in scenarios(0.1 if options.quick else 1.0) if not options.only or one.name in options.only]
    rivals = contenders.contenders()
    with tempfile.TemporaryDirectory() as folder, embedded.valkey(folder, durable=False) as server:
        race = Race(server.url, filler=rivals[1])
        runs = _rounds(race, chosen, rivals, options.rounds)
        watched = memory.watch(race, rivals[0], 10_000 if options.quick else 100_000)
        about = _about(race, options.rounds)
    results = {"about": about, "table": summary.summarise(chosen, runs), "memory": watched, "runs": runs}
    _write(Path(options.results), chosen, results)


def _rounds(race: Race, chosen: list[Any], rivals: list[contenders.Contender], rounds: int) -> summary.Runs:
    """In every round each contender runs each scenario once; the one that begins changes from round to round."""
    runs: summary.Runs = {scenario.name: {rival.name: [] for rival in rivals} for scenario in chosen}
    for number in range(rounds):
        first = number % len(rivals)
        for scenario in chosen:
            for rival in [*rivals[first:], *rivals[:first]]:
                result = race.run(rival, scenario)
                runs[scenario.name][rival.name].append(result)
                figure = summary.figures(scenario, [result])
                shown = f"{figure['rate']:>10,.0f}/s" if "rate" in figure else f"{figure['p50_ms']:>9.2f} ms"
                print(f"round {number + 1}  {scenario.name:<15} {rival.name:<18} {shown}", flush=True)
    return runs


def _about(race: Race, rounds: int) -> dict[str, Any]:
    server = race.server.info("server")
    node = subprocess.run([contenders.NODE, "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "server": f"Valkey {server['valkey_version']}" if "valkey_version" in server else "Redis",
        "machine": processor(),
        "cpus": os.cpu_count(),
        "rounds": rounds,
        "python": platform.python_version(),
        "node": node.strip().lstrip("v"),
        "redis-py": metadata.version("redis"),
    }


def _write(folder: Path, chosen: list[Any], results: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bullmq.json").write_text(json.dumps(results, indent=1) + "\n")
    text = summary.markdown(chosen, results)
    (folder / "bullmq.md").write_text(text)
    (folder / "bullmq.svg").write_text(picture.draw(chosen, results["table"]))
    print(f"\n{text}\nwritten to {folder}/bullmq.json, .md and .svg")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="BullMQ clients beside each other")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", help="the name of a scenario; may be given several times")
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
