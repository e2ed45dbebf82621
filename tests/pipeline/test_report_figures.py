"""Percentiles of many rows together, and figures as people read them."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobwire.pipeline.history import latency_sketch
from jobwire.pipeline.lake import sketches
from jobwire.pipeline.report import frames, period, wording
from jobwire.pipeline.report.charts import duration_bounds
from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.percentiles import overall, pooled
from pipeline import report_samples as samples


def latency(**times):
    """A row of the table for each queue, with these times of waiting and of running."""
    rows = [
        (samples.BULLMQ, queue, "job", samples.MONDAY, len(ms), *[0] * 6, samples.sketch(ms), samples.sketch(ms))
        for queue, ms in times.items()
    ]
    return Frames({"latency_hourly": samples._frame(rows, samples.schemas.LATENCY_HOURLY)}).latency


def test_percentiles_of_many_rows_are_those_of_all_their_runs():
    chance = np.random.default_rng(3)
    times = {
        "quick": chance.lognormal(3, 0.8, 40_000),
        "slow": chance.lognormal(7, 1.1, 3_000),
        "rare": chance.lognormal(11, 0.3, 150),
    }
    together = np.concatenate(list(times.values()))

    found = overall(latency(**times), "wait")

    assert found is not None
    for level in (50, 95, 99):
        assert found[f"p{level}"] == pytest.approx(np.percentile(together, level), rel=0.015)
    assert found["runs"] == len(together)


def test_groups_are_counted_apart():
    table = latency(a=np.full(10, 100.0), b=np.full(1_000, 9_000.0))

    by_queue = pooled(table, ["label"], "run").set_index("label")

    assert by_queue["p95"]["a"] == pytest.approx(100, rel=0.01)
    assert by_queue["p95"]["b"] == pytest.approx(9_000, rel=0.01)


def test_runs_that_took_less_than_a_millisecond_took_none():
    found = overall(latency(a=np.zeros(10)), "wait")

    assert found is not None
    assert list(found[["p50", "p95", "p99"]]) == [0, 0, 0]


def test_rows_without_a_sketch_tell_no_percentile():
    table = samples.week()["latency_hourly"].head(3).assign(wait_sketch=None)

    assert overall(Frames({"latency_hourly": table}).latency, "wait") is None
    assert overall(Frames({"latency_hourly": table}).latency, "run") is not None


def test_the_report_reads_sketches_as_gold_writes_them():
    assert sketches.GROWTH == latency_sketch._GROWTH
    assert latency_sketch._BELOW_ONE == -1


@pytest.mark.parametrize("module", [wording, period, frames])
def test_examples_in_the_docstrings_hold(module):
    result = doctest.testmod(module)

    assert (result.failed, result.attempted > 0) == (0, True)


@given(st.text(max_size=300), st.integers(min_value=5, max_value=60))
def test_a_shortened_name_is_one_visible_line_within_its_limit(text, limit):
    short = wording.shorten(text, limit)

    assert 0 < len(short) <= max(limit, len("(no name)"))
    assert short.isprintable() or not text.isprintable()
    assert "\n" not in short


@given(st.lists(st.sampled_from(["a", "a (2)", "b", "a (3)"])))
def test_distinct_labels_are_distinct(texts):
    labels = wording.distinct(texts)

    assert len(set(labels)) == len(labels) == len(texts)


@given(st.floats(min_value=0, max_value=1e12))
def test_a_count_is_right_to_half_a_per_cent(value):
    text = wording.count(round(value))
    scale = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1)

    assert float(text.rstrip("kMG").replace(",", "")) * scale == pytest.approx(round(value), rel=0.0051)


@given(st.floats(min_value=0, max_value=1e11))
def test_a_duration_is_right_to_four_per_cent(ms):
    number, unit = wording.duration(ms).split()
    scale = {"ms": 1, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}[unit]

    assert float(number) * scale == pytest.approx(ms, rel=0.04, abs=0.006)


@given(st.lists(st.floats(min_value=0, max_value=1e10), min_size=1, max_size=30))
def test_shades_of_a_heat_map_have_rising_bounds(values):
    bounds = duration_bounds(pd.Series(values))

    assert 1 <= len(bounds) <= 5
    assert bounds == sorted(set(bounds))
    assert all(math.isfinite(bound) for bound in bounds)
