"""Budgets as metrics in Prometheus's text form, for a collector that reads files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from jobwire.pipeline.targets.budget import Budget

_HELP = {
    "jobwire_slo_budget_left_ratio": "Share of the error budget of the window that is left; below 0: overspent.",
    "jobwire_slo_burn_rate": "Share of bad cases by the share that is allowed, in the last 1h, 6h and 3d.",
    "jobwire_slo_alert": "1 while the budget is spent too fast: fast is worth a page, slow a ticket.",
    "jobwire_slo_observed_timestamp_seconds": "When the stores were last read.",
}


def metrics_text(found: Sequence[Budget], until: datetime) -> str:
    """Returns the metrics of all budgets."""
    samples: dict[str, list[str]] = {name: [] for name in _HELP}

    def add(name: str, value: float, **labels: str) -> None:
        inside = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        samples[name].append(f"{name}{f'{{{inside}}}' if inside else ''} {value:.10g}")

    for one in found:
        labels = {"store": one.key.store, "queue": one.key.queue, "target": one.measure}
        add("jobwire_slo_budget_left_ratio", one.left, **labels)
        for window, rate in one.burn.items():
            add("jobwire_slo_burn_rate", rate, **labels, window=window)
        for severity in ("fast", "slow"):
            add("jobwire_slo_alert", float(one.alert == severity), **labels, severity=severity)
    add("jobwire_slo_observed_timestamp_seconds", until.timestamp())
    lines = [[f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge", *each] for name, each in samples.items()]
    return "\n".join(line for family in lines for line in family) + "\n"


def write_metrics(file: Path, text: str) -> None:
    """Replaces the file in one step: a collector never reads half of it."""
    draft = file.with_name(f".{file.name}.new")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, file)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
