"""The pipeline's own runs, from which this report comes."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd

from jobwire.pipeline.report.frames import Frame, Frames
from jobwire.pipeline.report.parts import Cell, Grid, Section
from jobwire.pipeline.report.period import Period
from jobwire.pipeline.report.wording import count, duration, moment, plural, shorten

_ROWS = 10
_TONES = {"ok": "good", "failed": "bad", "interrupted": "bad"}


def runs(frames: Frames, period: Period) -> Section:
    """Returns the newest runs, and how many failed."""
    table = frames.runs.sort_values("started_at", ascending=False, kind="stable")
    if table.empty:
        return Section("runs", "Pipeline runs", "No run of the pipeline has been recorded")
    return Section("runs", "Pipeline runs", _finding(table), grids=[_grid(table)])


def _finding(table: Frame) -> str:
    bad = table[table["outcome"].isin(["failed", "interrupted"])]
    if bad.empty:
        read = plural(table["rows_in"].sum(), "row")
        return f"The pipeline ran {plural(len(table), 'time')} without a failure, reading {read}"
    newest = bad.iloc[0]
    when = f"{shorten(newest['command'], 20)} on {moment(newest['started_at'])}"
    return f"{len(bad)} of {plural(len(table), 'pipeline run')} did not finish, last {when}"


def _grid(table: Frame) -> Grid:
    rows = [
        [
            shorten(row["command"], 40),
            Cell("–" if pd.isna(row["started_at"]) else moment(row["started_at"]), "steady"),
            duration((row["ended_at"] - row["started_at"]) / timedelta(milliseconds=1)),
            *("–" if pd.isna(row[column]) else count(row[column]) for column in ("rows_in", "rows_out")),
            Cell(shorten(row["outcome"], 20), _TONES.get(row["outcome"], "quiet")),
        ]
        for row in table.head(_ROWS).to_dict("records")
    ]
    caption = f"The newest {_ROWS} of {len(table)} runs" if len(table) > _ROWS else "Runs"
    columns = ("command", "started (UTC)", "took", "rows in", "rows out", "outcome")
    return Grid(caption, columns, rows, frozenset({"took", "rows in", "rows out"}))
