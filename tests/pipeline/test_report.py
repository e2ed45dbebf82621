"""The report tells what the tables hold, in one page that stands alone."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pandas as pd
import pytest

from jobwire.pipeline.lake import schemas
from jobwire.pipeline.report import write_report
from jobwire.pipeline.report.drawing import svg
from jobwire.pipeline.report.frames import Frames
from jobwire.pipeline.report.palette import DARK
from jobwire.pipeline.report.sections import sections
from pipeline import report_samples as samples
from pipeline.report_page import Page

pytestmark = pytest.mark.xdist_group("report")  # one report serves them all


@pytest.fixture(scope="module")
def tables():
    return samples.week()


@pytest.fixture(scope="module")
def folder(tables, tmp_path_factory):
    folder = tmp_path_factory.mktemp("week") / "out"
    write_report(tables, folder, title="Queues & <their> week", period=samples.WEEK, png=True)
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return Page.at(folder / "report.html")


@pytest.fixture(scope="module")
def momentary(tmp_path_factory):
    target = tmp_path_factory.mktemp("moment")
    return Page.at(write_report(samples.moment(), target, title="Demo", period=samples.MOMENT))


def test_the_page_needs_nothing_but_itself(page, folder):
    local = {f"{table}.csv" for table in samples.week()} | {f"#{name}" for name in page.ids}

    assert set(page.references) <= local
    assert not {"script", "link", "img", "iframe", "object", "style-src"} & set(page.tags)
    text = (folder / "report.html").read_text()
    assert "http" not in text
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]*)", text)) <= {f"#{name}" for name in page.ids}


def test_every_link_leads_somewhere(page, folder):
    for reference in page.references:
        assert reference[1:] in page.ids if reference.startswith("#") else (folder / reference).exists()


def test_what_a_finding_names_is_linked_to_its_row(folder):
    text = (folder / "report.html").read_text()
    finding = re.search(r'<section id="failures">.*?<h2>(.*?)</h2>', text, re.DOTALL)[1]
    links = dict(re.findall(r'<a href="#([^"]+)">([^<]+)</a>', finding))
    assert set(links.values()) == {"emails", "ConnectionError"}
    for anchor, name in links.items():
        row = re.search(rf'<tr id="{anchor}">(.*?)</tr>', text)[1]
        assert re.sub("<[^>]*>", " ", row).split()[0] == name


def test_every_chart_is_there_for_a_wide_page_and_for_a_phone(folder):
    text = (folder / "report.html").read_text()
    wide, narrow = (re.findall(rf'<div class="{kind}"><svg [^>]*?width="(\d+)"', text) for kind in ("wide", "narrow"))
    assert len(wide) == len(narrow) > 10
    assert max(map(int, narrow)) <= 360


def test_a_label_begins_at_the_dot_of_its_own_percentile():
    names = next(one for one in sections(Frames(samples.moment()), samples.MOMENT) if one.key == "names")
    chart = svg(names.charts[0].drawing, "names")
    dots = [float(x) for x in re.findall(r'translate\(([\d.]+),[\d.]+\)" d="[^"]*" fill="#4a90c2"', chart)]
    labels = [float(x) for x in re.findall(r'<text [^>]*translate\(([\d.]+),[\d.]+\)"[^>]*>p95 ', chart)]
    assert len(labels) >= 4
    for label in labels:
        assert min(abs(abs(label - dot) - 4) for dot in dots) < 1


def test_ids_of_many_charts_on_one_page_do_not_meet(page):
    assert len(page.ids) == len(set(page.ids))


def test_the_title_is_told_as_it_is(page):
    assert "Queues & <their> week" in page.texts
    assert "their" not in page.tags


def test_the_headline_sums_the_tables_up(page, tables):
    counts = tables["throughput_hourly"]
    added, failed = counts["added"].sum(), counts["failed"].sum()
    ended = counts["completed"].sum() + failed

    assert f"{added / 1e6:.2f}M" in page.texts
    assert f"{100 * failed / ended:.1f} %" in page.texts
    assert f"{failed / 1e3:.1f}k jobs failed for good" in page.texts
    assert page.texts[page.texts.index("busiest queue") + 1] == "emails"


def test_every_queue_has_a_row_with_its_own_figures(page, tables):
    counts = tables["throughput_hourly"].groupby("queue")[["added", "completed", "failed"]].sum()
    row = next(row for row in page.rows if row[:2] == ["invoices", "pgboss"])

    added, completed, failed = counts.loc["invoices"]
    assert row[2:5] == [
        f"{added / 1e3:.0f}k",
        f"{completed / 1e3:.0f}k",
        f"{100 * failed / (completed + failed):.1f} %",
    ]
    assert [row[0] for row in page.rows[1:5]] == ["emails", "thumbnails", "invoices", "video.transcode"]


def test_throughput_names_the_busiest_hour(page, tables):
    hourly = tables["throughput_hourly"].groupby("hour")["completed"].sum()
    peak = hourly.idxmax()

    assert f"{peak:%a} {peak.day} {peak:%b %H:%M}" in page.findings["throughput"]
    assert f"did {hourly.max() / 1000:.3g}k" in page.findings["throughput"]


def test_failures_name_the_queue_with_the_greatest_share_and_its_main_error(page, tables):
    counts = tables["throughput_hourly"].groupby("queue")[["completed", "failed"]].sum().loc["emails"]
    ended = counts["completed"] + counts["failed"]

    share = f"{100 * counts['failed'] / ended:.1f} %"
    assert (
        page.findings["failures"] == f"emails failed most: {share} of {ended / 1e3:.0f}k jobs, mainly ConnectionError"
    )


def test_failures_name_the_worst_day(page, tables):
    days = tables["failures_daily"].groupby("day")["failures"].sum()

    assert f"Thu 14 May was the worst day: {days.max() / 1e3:.3g}k failed runs" in page.text


def test_retries_tell_how_many_jobs_they_saved(page, tables):
    again = tables["retries"].query("attempts > 1")
    saved, tried = again["succeeded"].sum(), again["jobs"].sum()

    assert f"Retries saved {saved / 1e3:.1f}k jobs: {100 * saved / tried:.1f} %" in page.findings["retries"]


def test_workers_tell_their_share_of_busy_time(page, tables):
    hours = tables["workers_hourly"]
    busy = hours["busy_ms"].sum() / (3_600_000 * len(hours))

    assert f"10 workers, busy {100 * busy:.0f} % of the time" in page.findings["workers"]


def test_quality_names_what_needs_a_look_and_what_was_missed(page):
    assert page.findings["quality"] == "1 of 4 checks needs a look: malformed rows; 3,412 events missed"
    assert ["look", "malformed rows", "3", "emails 3", "left out, kept in quarantine"] in page.rows


def test_runs_tell_of_the_one_that_failed(page):
    assert page.findings["runs"] == "1 of 28 pipeline runs did not finish, last ingest on 14 May 00:02"


def test_every_colour_of_a_chart_has_a_counterpart_for_dark_screens(page):
    assert {paint for paint in page.paints if paint not in ("none", "transparent")} <= set(DARK)


@pytest.mark.parametrize("name", samples.TABLES)
def test_each_table_is_there_as_csv_and_json_with_the_same_figures(folder, tables, name):
    as_csv, as_json = pd.read_csv(folder / f"{name}.csv"), json.loads((folder / f"{name}.json").read_bytes())

    readable = [column for column in tables[name] if not column.endswith("_sketch")]
    assert list(as_csv) == readable
    assert len(as_csv) == len(as_json) == len(tables[name])
    for column in tables[name][readable].select_dtypes("number"):
        assert as_csv[column].sum() == pytest.approx(tables[name][column].sum())
        assert sum(row[column] for row in as_json) == pytest.approx(tables[name][column].sum())


def test_exported_times_are_in_utc_and_say_so(folder):
    first = json.loads((folder / "throughput_hourly.json").read_bytes())[0]

    assert first["hour"] == "2026-05-11T00:00:00Z"
    assert json.loads((folder / "failures_daily.json").read_bytes())[0]["day"] == "2026-05-11"


def test_pictures_are_written_when_asked_for(folder):
    pictures = sorted(folder.glob("*.png"))

    assert {"throughput.png", "latency-heat.png", "failures.png", "workers.png"} <= {path.name for path in pictures}
    assert all(path.read_bytes().startswith(b"\x89PNG\r\n") for path in pictures)


def test_a_week_has_a_course_and_a_heat_map_by_day(page):
    assert "time (UTC)" in page.texts
    assert "p95 wait by day and hour of day, all queues" in page.texts
    assert "Sun 17 May" in page.texts


def test_ten_seconds_compare_queues_instead_of_showing_one_bar_of_time(momentary):
    assert "time (UTC)" not in momentary.texts
    assert "hour of day (UTC)" not in momentary.texts
    assert "Jobs that ended, by queue and outcome" in momentary.texts
    assert "a second" in momentary.findings["throughput"]
    assert "10 s from 11 May 2026, 09:12 (UTC)" in momentary.texts


def test_a_worker_is_measured_by_the_part_of_the_hour_that_the_period_covers(tmp_path):
    busy = pd.DataFrame(
        [(samples.BULLMQ, "emails", "mail-1", samples.MONDAY + timedelta(hours=9), 40, 5_000, 5_000 / 3_600_000)],
        columns=list(schemas.WORKERS_HOURLY.names),
    )
    page = Page.at(write_report({"workers_hourly": busy}, tmp_path, title="t", period=samples.MOMENT))

    assert page.findings["workers"] == "mail-1 did all the work, busy 50 % of the time"


def test_a_worker_of_several_jobs_at_once_is_told_in_jobs_at_a_time(tmp_path):
    hour = samples.MONDAY + timedelta(hours=9)
    busy = pd.DataFrame(
        [
            (samples.BULLMQ, "emails", "mail-1", hour, 40, 35_000, 1),
            (samples.BULLMQ, "sms", "mail-1", hour, 9, 5_000, 1),
        ],
        columns=list(schemas.WORKERS_HOURLY.names),
    )
    page = Page.at(write_report({"workers_hourly": busy}, tmp_path, title="t", period=samples.MOMENT))

    assert page.findings["workers"] == "mail-1 did all the work, running 4.0 jobs at a time"


def test_runs_of_unknown_workers_are_counted(tmp_path):
    hour = samples.MONDAY + timedelta(hours=9)
    busy = pd.DataFrame(
        [(samples.BULLMQ, "emails", "mail-1", hour, 40, 5_000, 0.1), (samples.BULLMQ, "emails", None, hour, 7, 900, 0)],
        columns=list(schemas.WORKERS_HOURLY.names),
    )
    page = Page.at(write_report({"workers_hourly": busy}, tmp_path, title="t", period=samples.MOMENT))
    text = " ".join(page.texts)

    assert "Of 7 more runs, the stores do not name the worker." in text


def test_runs_that_a_store_forgot_are_counted_where_they_are_missing(tables, tmp_path):
    forgotten = ("forgotten runs", samples.PGBOSS, "invoices", 972, False, "")
    checks = pd.DataFrame([forgotten], columns=list(schemas.QUALITY.names))
    page = Page.at(
        write_report(
            {**tables, "quality": checks, "gaps": tables["gaps"].head(0)}, tmp_path, title="t", period=samples.WEEK
        )
    )
    text = " ".join(page.texts)

    assert "No event was missed" not in text
    assert "972 runs of invoices had been replaced by a later run of the same job before they were read." in text
    assert "972 more failed runs of invoices are not among these" in text
    assert "Jobs count their runs themselves: of 972 runs of invoices, nothing else is known." in text
