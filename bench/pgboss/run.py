"""The benchmark of PostgreSQL queues: every library on one server, in one run, in turns.

    python bench/pgboss/run.py [--quick] [--rounds 3] [--only drain_10] [--results bench/results]

Each run has a database of its own. Writes `pgboss.json` and `pgboss.md`. Nothing is asserted about timings.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[2]))

from bench.machine import processor
from bench.pgboss.contenders import Contender, contenders
from bench.pgboss.scenarios import Scenario, scenarios

from jobwire import embedded

RUN_WITHIN = 120
Runs = dict[str, dict[str, list[dict[str, Any]]]]


def main() -> None:
    options = _options()
    chosen = [one for one in scenarios(0.1 if options.quick else 1.0) if not options.only or one.name in options.only]
    rivals = contenders()
    runs: Runs = {scenario.name: {rival.name: [] for rival in rivals} for scenario in chosen}
    with tempfile.TemporaryDirectory() as folder, embedded.postgres(folder, durable=False) as server:
        for number in range(options.rounds):
            first = number % len(rivals)
            for scenario in chosen:
                for rival in [*rivals[first:], *rivals[:first]]:
                    result = _run(server.url, rival, scenario)
                    runs[scenario.name][rival.name].append(result)
                    shown = _shown(scenario, _figure(scenario, [result]))
                    print(f"round {number + 1}  {scenario.name:<16} {rival.name:<26} {shown:>14}", flush=True)
        with psycopg.connect(server.url) as connection:
            version = str(connection.execute("SHOW server_version").fetchone()[0])  # type: ignore[index]
    about = {
        "server": f"PostgreSQL {version}",
        "machine": processor(),
        "cpus": os.cpu_count(),
        "rounds": options.rounds,
        "python": platform.python_version(),
        "durability": "off (throwaway server)",
    }
    _write(Path(options.results), chosen, rivals, {"about": about, "runs": runs})


def _run(url: str, rival: Contender, scenario: Scenario) -> dict[str, Any]:
    """One contender on one scenario, in a fresh database."""
    name = f"bench_{uuid.uuid4().hex[:10]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        try:
            own = url.rpartition("/")[0] + f"/{name}"
            jobs = max(100, int(scenario.jobs * rival.share)) if scenario.kind == "drain" else scenario.jobs
            order = {"url": own, "kind": scenario.kind, "jobs": jobs, "concurrency": scenario.concurrency}
            done = subprocess.run(
                [*rival.command, json.dumps(order)], capture_output=True, text=True, timeout=RUN_WITHIN, check=False
            )
            if done.returncode != 0:
                raise RuntimeError(f"{rival.name} failed on {scenario.name}:\n{done.stderr[-2000:]}")
            result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]
    if "waits" in result:
        return {"waits": [round(wait, 6) for wait in result["waits"]]}
    return {**result, "jobs": jobs}


def _figure(scenario: Scenario, results: list[dict[str, Any]]) -> float:
    """Jobs per second, or the median wait in milliseconds: the median over the rounds."""
    if scenario.kind == "latency":
        return statistics.median(statistics.median(result["waits"]) * 1000 for result in results)
    return statistics.median(result["jobs"] / result["seconds"] for result in results)


def _shown(scenario: Scenario, figure: float) -> str:
    return f"{figure:,.2f} ms" if scenario.kind == "latency" else f"{figure:,.0f}/s"


def _write(folder: Path, chosen: list[Scenario], rivals: list[Contender], results: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pgboss.json").write_text(json.dumps(results, indent=1) + "\n")
    about = results["about"]
    lines = [
        "# PostgreSQL queues beside each other", "",
        f"{about['server']}, durability {about['durability']}, {about['cpus']} CPUs for server and client together, "
        f"Python {about['python']}; median of {about['rounds']} rounds.", "",
        "| | " + " | ".join(rival.name for rival in rivals) + " |", "|---|" + "---:|" * len(rivals),
    ]  # fmt: skip
    for scenario in chosen:
        cells = [_shown(scenario, _figure(scenario, results["runs"][scenario.name][rival.name])) for rival in rivals]
        lines.append(f"| {scenario.title} | " + " | ".join(cells) + " |")
    text = "\n".join(lines) + "\n"
    (folder / "pgboss.md").write_text(text)
    print("\n" + text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="PostgreSQL queues beside each other")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="the name of a scenario; may be given several times")
    parser.add_argument("--results", default=str(Path(__file__).parents[1] / "results"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
