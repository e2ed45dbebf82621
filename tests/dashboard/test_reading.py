"""What a page makes of long names, many events, and times that have passed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from awaiting import eventually
from conformance.recycled import new_name
from dashboard.browsing import Browser
from jobwire import Queue, connect
from jobwire.dashboard import dashboard
from jobwire.dashboard.event_tail import MOST_PROGRESS
from jobwire.dashboard.pages import campaign, schedules
from jobwire.dashboard.series import Bin
from jobwire.model import Schedule


@pytest.fixture
def url(unique):
    return f"memory:{unique}"


async def test_progress_does_not_drive_the_other_events_out(browse, queue):
    job = await queue.add({"to": "ann"})
    for number in range(250):
        await queue.admin.update_progress(job.id, number % 100)
    browser = browse()
    page = await browser.open("events")
    assert page.text.count("progress") >= MOST_PROGRESS
    assert "added" in page.text
    assert '"jobId"' not in page.text
    one = await browser.open("events", kind="added")
    assert one.title == "letters: the last 1 added event"
    assert "jobwire" in one.text
    assert (await browser.open("events", kind="progress")).title == "letters: the last 50 progress events"
    assert (await browser.open("events", kind="<b>")).title == "letters: no <b> events yet"


async def test_a_very_long_name_of_a_queue_is_cut_in_titles_and_sentences():
    name = "q" * 500
    async with connect(f"memory:{new_name()}") as connection, Queue(name, connection) as queue:
        job = await queue.add({"n": 1})
        await queue.admin.pause()
        app = dashboard({"shop": connection})
        browser = Browser(app, {})
        try:
            for path in ("", "queue", "jobs", "job", "failures", "workers", "schedules", "events"):
                page = await browser.open(path, queue=name, id=job.id)
                assert page.status == 200, path
                assert "q" * 61 not in page.title
                assert path in ("", "job") or "q" * 100 not in page.text  # a row has 80; a command needs all
        finally:
            await browser.close()
            await app.state.board.close()


def test_a_schedule_whose_job_waits_is_not_called_late():
    past = datetime.now(UTC) - timedelta(seconds=59)
    shown = schedules.Shown(Schedule("nightly", "mail", "mail"), "", [past], "")
    assert schedules._title("mail", [shown]) == "mail: 1 schedule, a run was due 59 s ago"


def test_the_charts_of_a_campaign_name_the_time_that_they_show():
    assert campaign._period([Bin(number) for number in range(10)]) == "in the last 5 min, since the dashboard looks"
    assert campaign._period([Bin(number) for number in range(120)]) == "in the last hour"


async def test_a_finding_of_the_doctor_is_in_the_overview(jobwire_valkey, unique):
    async with connect(f"bullmq+{jobwire_valkey.url}?prefix={unique}") as connection:
        async with Queue("letters", connection) as queue:
            await queue.add({"n": 1})
        app = dashboard({"shop": connection})
        app.state.board.stores["shop"].watch()
        browser = Browser(app, {})

        async def shows():
            page = await browser.open()
            return page if "a queue has jobs and no worker" in page.text.casefold() else None

        try:
            page = await eventually(shows)
            assert "shop, queue letters: a queue has jobs and no worker look" in page.text
            assert "Remedy: jobwire worker MODULE:HANDLER --queue letters" in page.text
            assert page.links["look"] == "queue?store=shop&queue=letters"
        finally:
            await browser.close()
            await app.state.board.close()
