"""Medians, spread and ratios of the runs, as a table."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from bench.peers.scenarios import Scenario

Runs = dict[str, dict[str, list[dict[str, Any]]]]
"""What was measured, by scenario and contender, one entry for each round."""
OURS = "jobwire"


@dataclass(frozen=True)
class Figure:
    """The median of one contender on one scenario, with the lowest and the highest round."""

    value: float
    lowest: float
    highest: float
    ratio: float
    """How many times better it is than jobwire: the median of the rounds' own ratios."""
    client_us: float | None = None
    server_us: float | None = None


def figure(scenario: Scenario, runs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> Figure | None:
    """Returns the figure, or None if the contender can't do the scenario."""
    if not runs:
        return None
    values, own = [_value(scenario, run) for run in runs], [_value(scenario, run) for run in ours]
    if scenario.operation == "latency":
        ratio = statistics.median(mine / other for mine, other in zip(own, values, strict=True))
        return Figure(statistics.median(values), min(values), max(values), ratio)
    ratio = statistics.median(other / mine for mine, other in zip(own, values, strict=True))
    client, server = (
        statistics.median(run[part] / run["jobs"] * 1e6 for run in runs) for part in ("cpu", "server_cpu")
    )
    return Figure(statistics.median(values), min(values), max(values), ratio, client, server)


def _value(scenario: Scenario, run: dict[str, Any]) -> float:
    """Returns milliseconds of a latency run, else jobs per second."""
    if scenario.operation == "latency":
        return 1000 * statistics.median(run["waits"])
    return run["jobs"] / run["seconds"]


def markdown(scenarios: list[Scenario], names: list[str], runs: Runs, about: dict[str, Any]) -> str:
    figures = {
        (one.name, name): figure(one, runs[one.name][name], runs[one.name][OURS]) for one in scenarios for name in names
    }
    quick = " with a tenth of the jobs" if about["quick"] else ""
    lines = [
        "# Python queues on Redis beside each other",
        "",
        f"{about['server']} without persistence, {about['machine']}, {about['cpus']} CPUs shared by client and server "
        f"(load {about['load']} before), Python {about['python']}. Medians of {about['rounds']} rounds{quick}, "
        "contenders in turns, each in a process of its own; below them the lowest and the highest round. In "
        "brackets: how many times as good as jobwire, the median of the rounds' own ratios.",
        "",
        "Each library does its own work with its own defaults, and they promise different things: Huey pops jobs from "
        "a list and loses one whose worker dies, arq looks for jobs every half second, RQ's process runs one job at a "
        "time. jobwire, RQ, SAQ, arq and streaQ keep the state of each job, the others only messages.",
        "",
        *_table(scenarios, names, lambda scenario, name: _shown(scenario, figures[scenario.name, name])),
        "",
        "## CPU time, µs per job",
        "",
        "Client: the process, from the first job's start to the last one's end. Server: the whole run, with the start "
        "of the worker.",
        "",
        *_table(
            [one for one in scenarios if one.operation != "latency"],
            names,
            lambda scenario, name: _costs(figures[scenario.name, name]),
        ),
    ]
    return "\n".join(lines) + "\n"


def _table(scenarios: list[Scenario], names: list[str], cell: Any) -> list[str]:
    return [
        f"| | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
        *(f"| {one.title} | {' | '.join(cell(one, name) for name in names)} |" for one in scenarios),
    ]


def _shown(scenario: Scenario, found: Figure | None) -> str:
    if found is None:
        return "–"
    digits, unit = (2, " ms") if scenario.operation == "latency" else (0, "/s")
    value, lowest, highest = (f"{each:,.{digits}f}" for each in (found.value, found.lowest, found.highest))
    return f"{value}{unit} ({found.ratio:.2f}×)<br>{lowest} to {highest}"


def _costs(found: Figure | None) -> str:
    return "–" if found is None or found.client_us is None else f"{found.client_us:,.0f} + {found.server_us:,.0f}"
