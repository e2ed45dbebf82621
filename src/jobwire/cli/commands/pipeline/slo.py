"""`jobwire pipeline slo`."""

# ruff: noqa: PLC0415 - what a command works with is imported when it runs, so that --help answers at once

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jobwire.cli.commands.pipeline.parameters import LAKE, LakeRoot, SettingsFile
from jobwire.cli.exit_codes import DONE, FAILED_CHECKS
from jobwire.cli.parameters import Json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from jobwire.pipeline.targets.budget import Budget


def slo(
    *,
    lake: LakeRoot = LAKE,
    settings_file: SettingsFile = None,
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write the figures as metrics for Prometheus into this file.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the error budgets of queues with targets. Ends with exit code 5 if one is spent too fast."""
    from jobwire.cli.output import emit
    from jobwire.errors import InvalidOption
    from jobwire.pipeline.lake.lake import Lake
    from jobwire.pipeline.settings import read_settings
    from jobwire.pipeline.targets.budget import budgets
    from jobwire.pipeline.targets.from_lake import read_picture
    from jobwire.pipeline.targets.metrics import metrics_text, write_metrics

    targets = read_settings(settings_file).targets
    if not targets.targets:
        raise InvalidOption(
            "pipeline.targets",
            None,
            'must have a queue: write [pipeline.targets.emails] with wait_p95 = "30s" into jobwire.toml',
        )
    picture = read_picture(Lake(lake))
    found = budgets(picture.queues, picture.backlogs, targets, picture.until)
    if metrics is not None:
        write_metrics(metrics, metrics_text(found, picture.until))
    if as_json:
        emit({"observed_until": picture.until.isoformat(), "budgets": [_as_dict(one) for one in found]})
    else:
        _show(found, picture.until)
    raise typer.Exit(FAILED_CHECKS if any(one.alert for one in found) else DONE)


def _as_dict(one: Budget) -> dict[str, Any]:
    return {
        "store": one.key.store,
        "queue": one.key.queue,
        "target": one.measure,
        "limit": one.limit,
        "window_days": one.target.window.total_seconds() / 86_400,
        "observed_days": round(one.observed.total_seconds() / 86_400, 3),
        "cases": one.cases.all,
        "bad": one.cases.bad,
        "allowed_share": one.allowed,
        "bad_share": one.cases.share,
        "met": one.met,
        "budget_left": one.left,
        "burn": one.burn,
        "alert": one.alert,
    }


def _show(found: Sequence[Budget], until: datetime) -> None:
    from rich.table import Table

    from jobwire.cli.output import console, printable

    out = console()
    if not found:
        out.print("no queue of the lake has a target")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("queue", "target"):
        table.add_column(name, overflow="fold")
    for name in ("bad", "of", "budget left", "burn 1h", "6h", "3d", "alert"):
        table.add_column(name, justify="right")
    for one in found:
        style = {"fast": "red", "slow": "yellow"}.get(one.alert or "", "")
        rates = (f"{one.burn[name]:.1f}" for name in ("1h", "6h", "3d"))
        figures = (f"{one.cases.bad:,.0f}", f"{one.cases.all:,.0f}", f"{one.left:.0%}", *rates, one.alert or "–")
        table.add_row(printable(one.key.queue), one.described, *figures, style=style)
    out.print(table)
    out.print(f"as of {until:%Y-%m-%d %H:%M} UTC, when the stores were last read")
