"""One table of all stores: jobwire beside the best of its peers, from the results of the other benches.

    python -m bench.summary [--results bench/results]

Reads the `.json` files that `make bench` has written and writes `summary.md`. A store without results is left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bullmq.scenarios import scenarios as bullmq_scenarios
from bench.peers.scenarios import scenarios as peers_scenarios
from bench.pgboss.scenarios import scenarios as pgboss_scenarios

OURS = "jobwire"
Values = dict[str, list[float]]
"""One value of each round, by contender."""


@dataclass(frozen=True)
class Row:
    """One scenario on one store."""

    store: str
    title: str
    values: Values
    unit: str

    @property
    def lower_is_better(self) -> bool:
        return self.unit == " ms"

    def best_peer(self) -> str:
        medians = {name: statistics.median(each) for name, each in self.values.items() if name != OURS and each}
        return (min if self.lower_is_better else max)(medians, key=lambda name: medians[name])

    def ratio(self, peer: str) -> float:
        """Returns how many times as good jobwire is: the median of the rounds' own ratios, since what else the machine
        does slows both sides of a round alike."""
        pairs = zip(self.values[OURS], self.values[peer], strict=True)
        return statistics.median(other / ours if self.lower_is_better else ours / other for ours, other in pairs)

    def cells(self) -> list[str]:
        peer = self.best_peer()
        return [
            *(self.store, self.title),
            *(_spread(self.values[OURS], self.unit), f"{peer}: {_spread(self.values[peer], self.unit)}"),
            f"{self.ratio(peer):.2f}×",
        ]


def _spread(values: list[float], unit: str) -> str:
    digits = 2 if unit == " ms" else 0
    median, lowest, highest = (f"{each:,.{digits}f}" for each in (statistics.median(values), min(values), max(values)))
    return f"{median}{unit} ({lowest} to {highest})"


def _from_runs(store: str, title: str, runs: dict[str, list[dict[str, Any]]], jobs: int = 0) -> Row:
    """Returns the row of runs that have `waits` in seconds, or `seconds` and perhaps a number of jobs of their own."""
    if any("waits" in run for each in runs.values() for run in each):
        waits = {name: [1000 * statistics.median(run["waits"]) for run in each] for name, each in runs.items()}
        return Row(store, title, waits, " ms")
    rates = {name: [run.get("jobs", jobs) / run["seconds"] for run in each] for name, each in runs.items()}
    return Row(store, title, rates, "/s")


def _bullmq(results: dict[str, Any]) -> Iterator[Row]:
    for scenario in bullmq_scenarios():
        if scenario.name in results["runs"]:
            table = results["table"][scenario.name][OURS]
            seconds = statistics.median(run.get("seconds", 0.0) for run in results["runs"][scenario.name][OURS])
            # A quick run has fewer jobs than the scenario.
            jobs = round(table["rate"] * seconds) if "rate" in table else 0
            yield _from_runs("BullMQ", scenario.title, results["runs"][scenario.name], jobs)


def _pgboss(results: dict[str, Any]) -> Iterator[Row]:
    for scenario in pgboss_scenarios():
        if scenario.name in results["runs"]:
            yield _from_runs("pg-boss", scenario.title, results["runs"][scenario.name])


def _monque(results: dict[str, Any]) -> Iterator[Row]:
    for concurrency, rates in results["rates"].items():
        yield Row("Monque", f"no-op jobs, concurrency {concurrency}", rates, "/s")


def _bridgemq(results: dict[str, Any]) -> Iterator[Row]:
    runs = results["runs"]
    values = {
        OURS: [run["run"] for run in runs["plain"]],
        "spec-style script": [run["run"] for run in runs["spec_style"]],
    }
    yield Row("BridgeMQ", "no-op jobs, concurrency 100", values, "/s")


def _peers(results: dict[str, Any]) -> Iterator[Row]:
    for scenario in peers_scenarios():
        runs = {name: each for name, each in results["runs"][scenario.name].items() if each}
        yield _from_runs("Redis, other protocols", scenario.title, runs)


STORES = {"bullmq": _bullmq, "pgboss": _pgboss, "monque": _monque, "bridgemq": _bridgemq, "peers": _peers}


def _named(found: dict[str, dict[str, Any]], name: str) -> str:
    """Returns what the results have under this name: once if all agree, else by file."""
    values = {file: results["about"].get(name, "not recorded") for file, results in found.items()}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{value} ({file})" for file, value in values.items())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.summary", description="One table of all benches")
    parser.add_argument("--results", default=str(Path(__file__).parent / "results"))
    folder = Path(parser.parse_args().results)
    found = {name: json.loads(path.read_text()) for name in STORES if (path := folder / f"{name}.json").exists()}
    rows = [row for name, results in found.items() for row in STORES[name](results)]
    machines = _named(found, "machine")
    pythons = _named(found, "python")
    lines = [
        "# All stores: jobwire beside the best of its peers",
        "",
        f"Machine: {machines}. Python {pythons}. Client and server share its CPUs. Medians, in brackets the lowest and "
        "the highest round. The peer is the best one in that row. The ratio is how many times as good jobwire is: the "
        "median of the rounds' own ratios. Each store's own page has all contenders and the settings.",
        "",
        "| store | | jobwire | best peer | ratio |",
        "|---|---|---:|---:|---:|",
        *(f"| {' | '.join(row.cells())} |" for row in rows),
    ]
    text = "\n".join(lines) + "\n"
    (folder / "summary.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
