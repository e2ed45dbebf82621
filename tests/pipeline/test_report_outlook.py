"""The report's sections about the present: targets, changes, forecast."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pytest

from jobwire.pipeline.report import write_report
from jobwire.pipeline.targets.from_lake import picture
from jobwire.pipeline.targets.outlook import outlook
from jobwire.pipeline.targets.target import NO_TARGETS, parse_targets
from pipeline import report_samples as samples
from pipeline.report_page import Page

END = samples.WEEK.end
TARGETS = parse_targets(
    {
        "emails": {"wait_p95": "2s", "failure_rate": "2%"},
        "invoices": {"wait_p95": "10s", "failure_rate": "5%"},
        "video*": {"wait_p95": "5s"},
    }
)


def two_weeks() -> dict[str, pd.DataFrame]:
    """The sample week, and one before it that had half as many jobs of invoices."""
    tables = samples.week()
    for name in ("throughput_hourly", "latency_hourly"):
        before = tables[name].assign(hour=tables[name]["hour"] - timedelta(days=7))
        if name == "throughput_hourly":
            counts = ["added", "started", "completed", "failed", "stalled", "retried"]
            fewer = before["queue"] == "invoices"
            before.loc[fewer, counts] = before.loc[fewer, counts] // 2
        tables[name] = pd.concat([before, tables[name]], ignore_index=True)
    return tables


def held(queue: str, store: str, ready: int) -> pd.DataFrame:
    job = {"store": store, "queue": queue, "state": "waiting", "created_at": END - timedelta(minutes=20)}
    return pd.DataFrame([{**job, "scheduled_at": pd.NaT, "seen_at": pd.Timestamp(END)}] * ready)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    tables = two_weeks()
    unfinished = pd.concat([held("video.transcode", samples.BRIDGEMQ, 40), held("emails", samples.BULLMQ, 3)])
    seen = picture(tables["throughput_hourly"], tables["latency_hourly"], unfinished, [])
    folder = tmp_path_factory.mktemp("outlook")
    return Page.at(write_report(samples.week(), folder, title="t", period=samples.WEEK, outlook=outlook(seen, TARGETS)))


def test_a_target_whose_budget_burns_is_the_finding_and_its_row_is_first(page: Page) -> None:
    assert page.findings["targets"] == "video.transcode burns fast through its budget for waiting"
    rows = [row for row in page.rows if len(row) == 9 and "within" in row[1]]
    assert [row[0] for row in rows[:2]] == ["video.transcode", "emails"]
    assert rows[0][1] == "p95 wait within 5 s"
    assert {row[-1] for row in rows} == {"burns fast", "missed", "met"}


def test_a_change_is_told_with_its_size_and_unchanged_queues_are_not(page: Page) -> None:
    assert page.findings["changes"] == "invoices: jobs that ended 2.0 times last week’s"
    assert next(row for row in page.rows if "2.0 times" in row)[:2] == ["invoices", "jobs"]


def test_a_forecast_has_every_queue_with_its_assumptions(page: Page) -> None:
    assert "video.transcode" in page.findings["forecast"]
    assert "Little’s law" in page.text
    [row] = [row for row in page.rows if len(row) == 8 and row[0] == "video.transcode"]
    assert row[1] == "40"


def test_a_quiet_queue_without_targets_has_neither_targets_nor_changes(tmp_path) -> None:
    tables = samples.week()
    seen = picture(tables["throughput_hourly"], tables["latency_hourly"], pd.DataFrame(), [])
    page = Page.at(write_report(tables, tmp_path, title="t", period=samples.WEEK, outlook=outlook(seen, NO_TARGETS)))
    assert {"targets", "changes"} & set(page.findings) == set()
    assert page.findings["forecast"] == "No queue is behind"
