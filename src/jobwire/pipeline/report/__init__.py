"""The report: one HTML page from the gold tables, which opens anywhere and needs neither network nor scripts.

Nothing in this folder uses Spark. The tables are small by then: hours, days and names, no jobs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from jobwire.pipeline.report.drawing import png as drawn
from jobwire.pipeline.report.exports import export
from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.headline import headline, queues_at_a_glance
from jobwire.pipeline.report.page import page
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.sections import sections
from jobwire.pipeline.targets.outlook import Outlook

__all__ = ["Period", "write_report"]


def write_report(
    tables: Mapping[str, pd.DataFrame],
    folder: Path,
    *,
    title: str,
    period: Period,
    png: bool = False,
    outlook: Outlook | None = None,
) -> Path:
    """Writes `report.html` into the folder, with `<table>.csv` and `<table>.json` of each table, and returns its path.

    The tables are those of history/gold.py by their names, `quality`, `gaps` and `runs`. The section of one that is
    missing or empty states it. With `png`, each chart is also written as `<chart>.png`. The page is replaced in one
    step, so a reader never sees half of it. With an outlook, there are sections about targets, changes and what comes.
    """
    frames = Frames(tables)
    parts = sections(frames, period, outlook)
    text = page(
        title,
        period,
        datetime.now(UTC),
        headline=headline(frames),
        glance=queues_at_a_glance(frames),
        sections=parts,
        tables=list(tables),
    )
    folder.mkdir(parents=True, exist_ok=True)
    export(tables, folder)
    if png:
        for chart in (chart for section in parts for chart in section.charts):
            (folder / f"{chart.key}.png").write_bytes(drawn(chart.drawing))
    target, draft = folder / "report.html", folder / ".report.html.new"
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, target)
    return target
