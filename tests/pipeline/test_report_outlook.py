"""The report's sections about the present: targets, changes, forecast."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from dashboard.sample_lake import publish
from jobwire.cli import main
from jobwire.pipeline.lake.lake import Lake
from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.from_lake import report
from jobwire.pipeline.report.parts import Section
from jobwire.pipeline.report.sections import sections
from jobwire.pipeline.report.sections.changes import changes
from jobwire.pipeline.targets.change import Change
from jobwire.pipeline.targets.from_lake import picture
from jobwire.pipeline.targets.hours import QueueKey
from jobwire.pipeline.targets.outlook import Outlook, outlook
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
def found() -> dict[str, Section]:
    tables = two_weeks()
    unfinished = pd.concat([held("video.transcode", samples.BRIDGEMQ, 40), held("emails", samples.BULLMQ, 3)])
    seen = picture(tables["throughput_hourly"], tables["latency_hourly"], unfinished, [])
    return {one.key: one for one in sections(Frames(samples.week()), samples.WEEK, outlook(seen, TARGETS))}


def rows_of(section: Section) -> list[list[str]]:
    return [[cell if isinstance(cell, str) else cell.text for cell in row] for row in section.grids[0].rows]


def test_a_target_whose_budget_burns_is_the_finding_and_its_row_is_first(found: dict[str, Section]) -> None:
    assert found["targets"].finding == "video.transcode burns fast through its budget for waiting"
    rows = rows_of(found["targets"])
    assert [row[0] for row in rows[:2]] == ["video.transcode", "emails"]
    assert rows[0][1] == "p95 wait within 5 s"
    assert {row[-1] for row in rows} == {"burns fast", "missed", "met"}


def test_a_change_is_told_with_its_size_and_unchanged_queues_are_not(found: dict[str, Section]) -> None:
    assert found["changes"].finding == "invoices: jobs that ended 2.0 times last week’s"
    assert [row[:2] for row in rows_of(found["changes"])] == [["invoices", "jobs"]]


@pytest.mark.parametrize(
    ("before", "now", "finding", "size"),
    [(2400, 0, "no job ended this week", "0 % of"), (0, 2400, "no job ended last week", "from none")],
)
def test_a_queue_that_stopped_or_began_again_is_told_in_words(before: int, now: int, finding: str, size: str) -> None:
    change = Change(QueueKey(samples.BULLMQ, "emails"), "jobs", before=before, now=now)
    section = changes(Frames(samples.week()), Outlook(NINE, NO_TARGETS, [], [], [change], compared=True))
    assert section is not None
    assert section.finding.endswith(f": {finding}")
    assert rows_of(section)[0][-1] == size


def test_a_forecast_has_every_queue_with_its_assumptions(found: dict[str, Section]) -> None:
    assert "video.transcode" in found["forecast"].finding
    assert "Little’s law" in found["forecast"].text
    assert {row[0]: row[1] for row in rows_of(found["forecast"])}["video.transcode"] == "40"


def test_a_quiet_queue_without_targets_has_neither_targets_nor_changes() -> None:
    tables = samples.week()
    seen = picture(tables["throughput_hourly"], tables["latency_hourly"], pd.DataFrame(), [])
    found = {one.key: one.finding for one in sections(Frames(tables), samples.WEEK, outlook(seen, NO_TARGETS))}
    assert {"targets", "changes"} & set(found) == set()
    assert found["forecast"] == "No queue is behind"


NINE = datetime(2026, 5, 11, 9, tzinfo=UTC)


def small_lake(root: Path, failed: int = 0) -> str:
    """A queue that began at 9:30 and was read last at 9:50."""
    own = {"store": samples.BULLMQ, "queue": "emails", "name": "emails"}
    counts = {"added": 1200, "started": 1200, "completed": 1200 - failed, "failed": failed, "stalled": 0, "retried": 0}
    began = NINE + timedelta(minutes=30)
    sketch = '{"100": 1200}'
    lake = publish(
        root,
        {
            "throughput_hourly": [{**own, "hour": NINE, **counts}],
            "latency_hourly": [{**own, "hour": NINE, "runs": 1200, "wait_sketch": sketch, "run_sketch": sketch}],
            "silver/jobs": [{**own, "id": "1", "state": "completed", "created_at": began, "day": NINE.date()}],
            "silver/attempts": [{**own, "job_id": "1", "started_at": began, "day": NINE.date()}],
        },
    )
    ingest = {
        "run": "1",
        "command": "ingest",
        "outcome": "ok",
        "started_at": (NINE + timedelta(minutes=50)).isoformat(),
    }
    Lake(lake).files.write("runs/1.json", {**ingest, "ended_at": None, "rows_in": 0, "rows_out": 0})
    return lake


def test_rates_of_a_report_are_over_the_time_that_was_observed(tmp_path: Path) -> None:
    made = report(Lake(small_lake(tmp_path / "lake")), tmp_path / "report")
    page = Page.at(Path(made.path))
    assert (made.since, made.until) == ("2026-05-11T09:30:00+00:00", "2026-05-11T09:50:00+00:00")
    assert page.findings["throughput"] == "1,200 jobs completed, 1 a second"
    [row] = [row for row in page.rows if len(row) == 8 and row[0] == "emails"]
    assert row[2:4] == ["3,600", "3,600"]


@pytest.mark.parametrize("expected", [(600, 5, "fast"), (6, 0, None)])
def test_the_command_ends_with_an_alert_if_a_budget_burns(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    expected: tuple[int, int, str | None],
) -> None:
    failed, code, alert = expected
    lake = small_lake(tmp_path / "lake", failed)
    (tmp_path / "jobwire.toml").write_text('[pipeline.targets.emails]\nfailure_rate = "1%"\nwait_p95 = "30s"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", "slo", "--lake", lake, "--json", "--metrics", str(tmp_path / "slo.prom")]) == code
    shown = json.loads(capsys.readouterr().out)
    assert shown["observed_until"] == "2026-05-11T09:50:00+00:00"
    assert [(one["target"], one["alert"], one["bad"]) for one in shown["budgets"]] == [
        ("wait_p95", None, 0),
        ("failure_rate", alert, failed),
    ]
    assert "jobwire_slo_alert{" in (tmp_path / "slo.prom").read_text()
    assert main(["pipeline", "slo", "--lake", lake]) == code
    assert "when the stores were last read" in capsys.readouterr().out


def test_without_targets_or_figures_the_command_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", "slo"]) == 1
    assert "pipeline.targets: must have a queue" in capsys.readouterr().err
    (tmp_path / "jobwire.toml").write_text('[pipeline.targets."*"]\nfailure_rate = 0.5\n')
    assert main(["pipeline", "slo"]) == 1
    assert "has no figures yet" in capsys.readouterr().err
