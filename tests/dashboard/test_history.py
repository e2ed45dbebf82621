"""The history of a lake: days, percentiles and causes, read without Spark."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from dashboard.browsing import Browser
from dashboard.hostile_texts import TEXTS
from dashboard.sample_lake import publish
from dashboard.test_hostile_texts import assert_only_text
from jobwire.dashboard import dashboard

MONDAY = datetime(2030, 1, 7, tzinfo=UTC)
STORE = "memory:shop"


def _hours(queue, days, completed, failed=0, **other):
    for day in range(days):
        for hour in (9, 15):
            at = MONDAY + timedelta(days=day, hours=hour)
            yield {"store": STORE, "queue": queue, "name": queue, "hour": at, "completed": completed, "failed": failed,
                   **other}  # fmt: skip


def _tables():
    sketch = '{"-1": 50, "350": 50}'  # half below a millisecond, half about a second
    return {
        "throughput_hourly": [*_hours("mail", 5, 1000, 20), *_hours("bills", 5, 10)],
        "latency_hourly": [*_hours("mail", 5, 0, runs=100, wait_sketch=sketch, run_sketch=sketch)],
        "failures_daily": [
            {
                "store": STORE, "queue": "mail", "name": "mail", "day": MONDAY.date(), "error_class": "TimeoutError",
                "failures": 40, "jobs": 20, "sample_error": f"TimeoutError: password=hunter2 {TEXTS[0]}",
                "first_at": MONDAY, "last_at": MONDAY + timedelta(hours=3),
            }
        ],
    }  # fmt: skip


@pytest.fixture
async def browser(tmp_path, unique):
    app = dashboard({"shop": f"memory:{unique}"}, lake=publish(tmp_path / "lake", _tables()))
    browser = Browser(app, {})
    yield browser
    await browser.close()
    await app.state.board.close()


async def test_all_queues_are_shown_with_their_percentiles_and_causes(browser):
    page = await browser.open("history", queue=None)
    assert page.title == "2 queues: 10,300 jobs finished in 5 days, 1.9% of them failed"
    assert "2,060 jobs finished on the busiest day" in page.text
    assert "mail" in page.links
    assert "1 s" in page.text
    assert "TimeoutError" in page.text
    assert "hunter2" not in page.html
    assert "History" in (await browser.open()).links


async def test_one_queue_has_charts_of_its_waiting_and_running_times(browser):
    page = await browser.open("history", queue="mail", source=STORE)
    assert page.title == "mail: 10,200 jobs finished in 5 days, 2.0% of them failed"
    assert "19 of 20 runs waited at most 1 s" in page.text
    assert [tag for tag, _ in page.elements].count("polyline") == 6
    assert (await browser.open("history", queue="mail", source=STORE, days=30)).title == page.title
    short = await browser.open("history", queue="mail", source=STORE, days=1)
    assert short.title.startswith("mail: 2,040 jobs finished in 24 hours")
    assert (await browser.open("history", queue="letters")).title == "The history has nothing about letters"


async def test_a_period_of_days_ends_with_the_last_one(tmp_path, unique):
    lake = publish(tmp_path / "lake", {"throughput_hourly": [*_hours("mail", 20, 1)]})
    app = dashboard({"shop": f"memory:{unique}"}, lake=lake)
    browser = Browser(app, {})
    try:
        assert (await browser.open("history", queue=None)).title == "1 queue: 14 jobs finished in 7 days"
    finally:
        await browser.close()
        await app.state.board.close()


async def test_a_new_publication_is_seen_and_a_missing_lake_is_said_to_be_empty(browser, tmp_path):
    await browser.open("history", queue=None)
    publish(tmp_path / "lake", {"throughput_hourly": [*_hours("mail", 1, 7)]})
    assert "14 jobs finished" in (await browser.open("history", queue=None)).title
    app = dashboard({"shop": "memory:"}, lake=str(tmp_path / "none"))
    other = Browser(app, {})
    try:
        page = await other.open("history", queue=None)
        assert (page.title, "jobwire pipeline run" in page.text) == ("The history is empty", True)
    finally:
        await other.close()
        await app.state.board.close()


async def test_hostile_texts_of_a_lake_are_shown_as_text(tmp_path, unique):
    hostile = " ".join(TEXTS)
    tables = {
        name: [row | {"queue": hostile, "error_class": hostile, "sample_error": hostile} for row in rows]
        for name, rows in _tables().items()
    }
    app = dashboard({"shop": f"memory:{unique}"}, lake=publish(tmp_path / "lake", tables))
    browser = Browser(app, {})
    try:
        pages = [await browser.open("history", queue=None), await browser.open("history", queue=hostile)]
        assert_only_text(pages)
        assert all("pwned(0)" in page.text for page in pages)
    finally:
        await browser.close()
        await app.state.board.close()


def test_without_pyarrow_one_sentence_names_the_extra():
    code = "import sys; sys.modules['pyarrow'] = None; import jobwire.dashboard.history"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install 'jobwire[spark]'" in ended.stderr.splitlines()[-1]


async def test_without_a_lake_there_is_no_history(unique):
    app = dashboard({"shop": f"memory:{unique}"})
    browser = Browser(app, {})
    try:
        page = await browser.open("history", queue=None)
        assert (page.status, "--lake" in page.text) == (404, True)
        assert "History" not in (await browser.open()).links
    finally:
        await browser.close()
        await app.state.board.close()
