"""From single runs to medians and ratios, as data and as Markdown."""

from __future__ import annotations

from statistics import median
from typing import Any

from bench.bullmq.scenarios import Scenario

Runs = dict[str, dict[str, list[dict[str, Any]]]]
BASELINE = "Node 5.62"


def quantile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def figures(scenario: Scenario, runs: list[dict[str, Any]]) -> dict[str, float]:
    """The medians of one contender's runs."""
    server = {name: median(run["server"][name] for run in runs) for name in runs[0]["server"]}
    if scenario.kind == "latency":
        return {
            "p50_ms": median(quantile(run["waits"], 0.5) for run in runs) * 1000,
            "p99_ms": median(quantile(run["waits"], 0.99) for run in runs) * 1000,
            **server,
        }
    rates = [scenario.jobs / run["seconds"] for run in runs]
    return {
        "rate": median(rates),
        "slowest": min(rates),
        "fastest": max(rates),
        "client_cpu_us_per_job": median(run["cpu"] for run in runs) * 1e6 / scenario.jobs,
        **server,
    }


def summarise(scenarios: list[Scenario], runs: Runs) -> dict[str, dict[str, dict[str, float]]]:
    """Per scenario and contender; `ratio` is how many times as good as the baseline (for latency: as quick)."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for scenario in scenarios:
        row = {name: figures(scenario, each) for name, each in runs[scenario.name].items()}
        base = row[BASELINE]
        for figure in row.values():
            latency = scenario.kind == "latency"
            figure["ratio"] = base["p50_ms"] / figure["p50_ms"] if latency else figure["rate"] / base["rate"]
        table[scenario.name] = row
    return table


def markdown(scenarios: list[Scenario], results: dict[str, Any]) -> str:
    """The tables for a reader; the JSON beside them has the rest."""
    table, about, memory = results["table"], results["about"], results["memory"]
    names = list(next(iter(table.values())))
    lines = [
        "# BullMQ clients beside each other",
        "",
        f"One {about['server']} without persistence, {about['cpus']} CPUs shared by client and server. Medians of "
        f"{about['rounds']} rounds, contenders in turns, each in a process of its own. The Python clients call "
        f"gc.freeze() before the clock starts, as a service would. In brackets: times {BASELINE}.",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
    ]
    for scenario in scenarios:
        row = table[scenario.name]
        cells = [f"{_value(scenario, row[name])} ({row[name]['ratio']:.2f}×)" for name in names]
        lines.append(f"| {scenario.title} | {' | '.join(cells)} |")
    lines += ["", "## Where the time goes, µs per job", ""]
    lines += [
        "Client: CPU time of the client's process. Server: time inside scripts, and how many calls they took.",
        "",
    ]
    lines += [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for scenario in scenarios:
        if scenario.kind != "latency":
            cells = [_costs(table[scenario.name][name]) for name in names]
            lines.append(f"| {scenario.title} | {' | '.join(cells)} |")
    lines += [
        "",
        "## Memory of a jobwire worker",
        "",
        f"{memory['jobs']:,} no-op jobs at concurrency 100; resident megabytes at each tenth of the run: "
        f"{', '.join(f'{value:g}' for value in memory['tenths_mb'])} (at most {memory['most_mb']:g}).",
        "",
        f"Python {about['python']}, Node {about['node']}, redis-py {about['redis-py']}.",
        "",
    ]
    return "\n".join(lines)


def _value(scenario: Scenario, figure: dict[str, float]) -> str:
    if scenario.kind == "latency":
        return f"p50 {figure['p50_ms']:.2f} ms, p99 {figure['p99_ms']:.2f} ms"
    return f"{figure['rate']:,.0f}/s"


def _costs(figure: dict[str, float]) -> str:
    client, server = figure["client_cpu_us_per_job"], figure["script_us_per_job"]
    return f"client {client:.0f}, server {server:.0f} in {figure['script_calls']:,.0f} calls"
