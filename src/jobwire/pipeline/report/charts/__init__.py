"""The kinds of chart that the report draws, each from a small frame."""

from __future__ import annotations

from jobwire.pipeline.report.charts.axes import HALF, PHONE, WIDE, Drawing
from jobwire.pipeline.report.charts.heat import duration_bounds, heat_map
from jobwire.pipeline.report.charts.rows import bars, percentile_ranges, stacked_bars
from jobwire.pipeline.report.charts.time import percentiles_over_time, stacked_over_time

__all__ = [
    "HALF",
    "PHONE",
    "WIDE",
    "Drawing",
    "bars",
    "duration_bounds",
    "heat_map",
    "percentile_ranges",
    "percentiles_over_time",
    "stacked_bars",
    "stacked_over_time",
]
