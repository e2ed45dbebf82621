"""Percentiles of any hours, queues and names together, from the sketches that each row of `latency_hourly` carries.

The sketches of many rows add up to that of them all, whose percentiles are right to 1 %. Averages of the rows' own
percentiles would not be.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jobwire.pipeline.lake.sketches import GROWTH, Bars
from jobwire.pipeline.report.frames import Column, Frame

LEVELS = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


def pooled(rows: Frame, by: Sequence[str], kind: str) -> Frame:
    """Returns `p50, p95, p99` in ms, and `runs`, of each group of rows; `kind` is `wait` or `run`. A group without any
    known duration is left out."""
    known = rows[rows[f"{kind}_bars"].notna()]
    if known.empty:
        return pd.DataFrame(columns=pd.Index([*by, *LEVELS, "runs"]))
    groups = known.groupby(list(by), sort=True)
    heights = _added_up(known[f"{kind}_bars"], groups.ngroup().to_numpy(), groups.ngroups)
    reached = heights.cumsum(axis=1)
    result = groups[["runs"]].sum()
    for place, (level, share) in enumerate(LEVELS.items()):
        wanted = np.ceil(reached[:, -1] * share)
        bucket = (reached >= wanted[:, np.newaxis]).argmax(axis=1)
        result.insert(place, level, np.where(bucket == 0, 0.0, 2 * GROWTH ** (bucket - 1.0) / (GROWTH + 1)))
    return result.reset_index()


def overall(rows: Frame, kind: str) -> Column | None:
    """Returns the percentiles of all rows together, or None if there are no rows."""
    everything = pooled(rows.assign(all=0), ["all"], kind)
    return None if everything.empty else everything.iloc[0]


def _added_up(bars: Sequence[Bars], group_of_row: NDArray[np.int64], groups: int) -> NDArray[np.float64]:
    """Returns one row of counts by bucket for each group."""
    lengths = [len(bar.buckets) for bar in bars]
    buckets = np.concatenate([bar.buckets for bar in bars])
    counts = np.concatenate([bar.counts for bar in bars])
    width = int(buckets.max()) + 1
    cells = np.repeat(group_of_row, lengths) * width + buckets
    heights: NDArray[np.float64] = np.bincount(cells, weights=counts, minlength=groups * width).astype(np.float64)
    return heights.reshape(groups, width)
