"""The report of little, of nothing, of very much, and of names that nobody expected."""

from __future__ import annotations

from datetime import timedelta

import pandas as pd
import pytest

from jobwire.errors import JobwireError
from jobwire.pipeline.lake import schemas
from jobwire.pipeline.report import Period, write_report
from pipeline import report_samples as samples
from pipeline.report_page import Page

SECTIONS = {"throughput", "latency", "failures", "names", "retries", "workers", "quality", "runs"}
HOSTILE = "<script>alert('q')</script>"
LONG = "invoice-" + "é" * 200 + "-eu"
ODD = "名前\u202e\x00\n\"quoted\" & 'so' 🚚"


def written(tables, tmp_path, period=samples.WEEK):
    return Page.at(write_report(tables, tmp_path, title="Report", period=period))


def shifted(tables, stretch):
    """The week again and again, seven days later each time."""
    more = {}
    for name, table in tables.items():
        copies = []
        for number in range(stretch):
            copy = table.copy()
            for column in {"hour", "day"} & set(copy):
                copy[column] = copy[column] + timedelta(days=7 * number)
            copies.append(copy)
        more[name] = pd.concat(copies, ignore_index=True)
    return more


def throughput(*rows):
    """Rows of store, queue, name, added, completed, failed in the week's first hour."""
    return pd.DataFrame(
        [
            (store, queue, name, samples.MONDAY, added, added, done, failed, 0, 0)
            for store, queue, name, added, done, failed in rows
        ],
        columns=list(schemas.THROUGHPUT_HOURLY.names),
    )


def renamed(tables, names):
    return {
        name: table.assign(
            **{column: table[column].replace(names) for column in ("queue", "name", "worker") if column in table}
        )
        for name, table in tables.items()
    }


@pytest.mark.parametrize("period", [samples.WEEK, samples.MOMENT], ids=["week", "moment"])
def test_without_any_table_every_section_says_so_in_a_sentence(tmp_path, period):
    page = written({}, tmp_path, period)

    assert set(page.findings) == SECTIONS
    assert "svg" not in page.tags
    assert page.findings["throughput"] == "No job was added and none ended in this period"
    assert page.findings["workers"] == "The stores name no worker for the runs of this period"


def test_empty_tables_read_as_missing_ones(tmp_path):
    empty = {name: table.head(0) for name, table in samples.week().items()}

    assert written(empty, tmp_path / "empty").findings == written({}, tmp_path / "none").findings
    assert (tmp_path / "empty" / "runs.json").read_text() == "[]"


@pytest.mark.parametrize("period", [samples.WEEK, samples.MOMENT], ids=["week", "moment"])
def test_names_that_look_like_markup_stay_text(tmp_path, period):
    names = {"emails": HOSTILE, "welcome": HOSTILE, "mail-1": HOSTILE, "invoices": LONG, "thumbnails": ODD}
    tables = renamed(samples.week() if period is samples.WEEK else samples.moment(), names)
    tables["failures_daily"]["error_class"] = HOSTILE
    tables["failures_daily"]["sample_error"] = "</td></table><img src=x onerror=alert(1)>"
    tables["quality"]["note"] = HOSTILE
    page = written(tables, tmp_path, period)

    assert not {"script", "img"} & set(page.tags)
    assert page.text.count(HOSTILE) > 5
    assert LONG not in page.text
    assert "invoice-éééééé…ééééééééé" in page.text
    assert "名前 \"quoted\" & 'so' 🚚" in page.text


def test_long_names_that_differ_only_in_their_middle_stay_apart(tmp_path):
    first, second = "a" * 40 + "1" + "b" * 40, "a" * 40 + "2" + "b" * 40
    rows = throughput((samples.BULLMQ, first, "x", 10, 10, 0), (samples.BULLMQ, second, "x", 5, 5, 0))
    page = written({"throughput_hourly": rows}, tmp_path)

    assert [row[2] for row in page.rows if row] == ["10", "5"]
    assert len({row[0] for row in page.rows if row}) == 2


def test_queues_of_one_name_are_told_apart_by_protocol_then_by_store(tmp_path):
    other = "bullmq+redis://10.0.0.9:6379/0"
    rows = throughput(
        (samples.BULLMQ, "emails", "a", 9, 9, 0), (samples.PGBOSS, "emails", "a", 8, 8, 0), (other, "sms", "a", 7, 7, 0)
    )
    page = written({"throughput_hourly": rows}, tmp_path / "two")
    assert [row[0] for row in page.rows if row] == ["emails (bullmq)", "emails (pgboss)", "sms"]

    rows = throughput((samples.BULLMQ, "emails", "a", 9, 9, 0), (other, "emails", "a", 8, 8, 0))
    page = written({"throughput_hourly": rows}, tmp_path / "stores")
    assert [row[0] for row in page.rows if row] == [
        "emails (10.0.0.4:6379/0)",
        "emails (10.0.0.9:6379/0)",
    ]


def test_a_queue_of_which_more_jobs_were_added_than_ended_is_named(tmp_path):
    rows = throughput((samples.BULLMQ, "emails", "a", 1_000, 400, 100), (samples.PGBOSS, "sms", "a", 50, 50, 0))
    page = written({"throughput_hourly": rows}, tmp_path)

    assert "500 jobs more were added to emails than completed or failed: they wait, or were cancelled" in page.text


def test_jobs_that_were_only_added_are_not_told_as_failures(tmp_path):
    page = written({"throughput_hourly": throughput((samples.BULLMQ, "emails", "a", 7, 0, 0))}, tmp_path)

    assert page.findings["throughput"] == "7 jobs were added, and none ended"
    assert page.findings["failures"] == "Nothing failed, and nothing was completed either"


def test_failed_runs_of_jobs_that_came_through_are_told_as_such(tmp_path):
    tables = {
        "throughput_hourly": throughput((samples.BULLMQ, "emails", "a", 7, 7, 0)),
        "failures_daily": samples.week()["failures_daily"].head(1),
    }

    assert "no job failed for good" in written(tables, tmp_path).findings["failures"]


def test_retries_that_bought_nothing_are_told_as_such(tmp_path):
    rows = pd.DataFrame([(samples.BULLMQ, "emails", "a", 3, 12, 0, 0.0)], columns=list(schemas.RETRIES.names))

    assert written({"retries": rows}, tmp_path).findings["retries"].startswith("Retries bought nothing: none of 12")


def test_a_gap_of_unknown_size_is_a_gap_all_the_same(tmp_path):
    gap = pd.DataFrame([(samples.PGBOSS, "invoices", None, "88", None, None)], columns=list(schemas.GAPS.names))
    page = written({"gaps": gap}, tmp_path)

    assert page.findings["quality"] == "No check was made; some events missed"
    assert ["invoices", "the beginning", "88", "unknown"] in page.rows


def test_a_run_that_is_still_under_way_has_no_duration(tmp_path):
    run = pd.DataFrame(
        [("r", "report", samples.MONDAY, None, "running", 0, 0, "{}", "{}", None)], columns=list(schemas.RUNS.names)
    )

    assert ["report", "11 May 00:00", "–", "0", "0", "running"] in written({"runs": run}, tmp_path).rows


def test_a_day_shows_queues_by_hour(tmp_path):
    day = Period(samples.MONDAY, samples.MONDAY + timedelta(days=1))
    tables = {name: table[table["hour"] < day.end] for name, table in samples.week().items() if "hour" in table}
    page = written(tables, tmp_path, day)

    assert "p95 wait by queue and hour" in page.texts
    assert "jobs per hour" in page.texts


@pytest.mark.slow
def test_five_weeks_are_drawn_by_day_and_by_weekday(tmp_path):
    weeks = Period(samples.MONDAY, samples.MONDAY + timedelta(days=35))
    page = written(shifted(samples.week(), 5), tmp_path, weeks)

    assert "jobs per day" in page.texts
    assert "p95 wait by weekday and hour of day, all queues" in page.texts
    assert {"Mon", "Sun"} <= set(page.texts)


def test_a_single_hour_of_a_week_is_enough(tmp_path):
    tables = {name: table.head(1) for name, table in samples.week().items()}

    assert set(written(tables, tmp_path).findings) == SECTIONS


def test_a_hundred_queues_keep_the_page_short(tmp_path):
    rows = throughput(*((samples.BULLMQ, f"queue-{number}", "a", number, number, 0) for number in range(100)))
    page = written({"throughput_hourly": rows}, tmp_path, samples.MOMENT)

    assert "The queues, the busiest 15 of 100" in page.texts
    assert len([row for row in page.rows if row]) == 15


def test_times_without_a_zone_are_taken_as_utc(tmp_path):
    rows = throughput((samples.BULLMQ, "emails", "a", 7, 7, 0))
    naive = rows.assign(hour=rows["hour"].dt.tz_localize(None))
    findings = [
        written({"throughput_hourly": table}, tmp_path / name).findings for name, table in (("a", rows), ("b", naive))
    ]

    assert findings[0] == findings[1]


def test_a_table_without_a_column_is_refused_by_name(tmp_path):
    with pytest.raises(JobwireError, match="the table retries has no column attempts"):
        write_report(
            {"retries": samples.week()["retries"].drop(columns="attempts")}, tmp_path, title="t", period=samples.WEEK
        )
    assert not (tmp_path / "report.html").exists()


def test_a_second_report_replaces_the_first(tmp_path):
    write_report(samples.moment(), tmp_path, title="First", period=samples.MOMENT)
    page = Page.at(write_report({}, tmp_path, title="Second", period=samples.MOMENT))

    assert "Second" in page.texts
    assert "First" not in page.texts
    assert [path.name for path in tmp_path.glob("*report.html*")] == ["report.html"]


def test_a_period_needs_two_aware_times_in_order():
    with pytest.raises(ValueError, match="two aware times in order"):
        Period(samples.WEEK.end, samples.WEEK.start)
    with pytest.raises(ValueError, match="two aware times in order"):
        Period(samples.MONDAY.replace(tzinfo=None), samples.MONDAY.replace(tzinfo=None))
