"""The overview: several stores, trouble first, and what a closer look at a few queues finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from awaiting import eventually
from conformance.recycled import new_name
from dashboard.browsing import Browser, Page
from jobwire import Queue, connect
from jobwire.boundary import Feature
from jobwire.dashboard import dashboard
from jobwire.dashboard.latency import Latency, latency_of
from jobwire.dashboard.pages import overview
from jobwire.flow import Flow, FlowJob
from jobwire.model import Job, State

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def two_stores():
    """A browser of a dashboard over the stores `shop` and `mail`, each with a paused queue `letters` that has a job."""
    async with connect(f"memory:{new_name()}") as shop, connect(f"memory:{new_name()}") as mail:
        for connection in (shop, mail):
            async with Queue("letters", connection) as queue:
                await queue.add({"n": 1})
                await queue.admin.pause()
        app = dashboard({"shop": shop, "mail": mail})
        browser = Browser(app, {})
        yield browser
        await browser.close()
        await app.state.board.close()


async def test_a_trouble_names_its_store_if_there_are_several(two_stores):
    page = await two_stores.open()
    for store in ("shop", "mail"):
        assert f"{store} letters is paused and 1 job waits" in page.text
    one = await two_stores.open(store="mail")
    assert one.title == "letters is paused and 1 job waits"
    assert "mail letters is paused" not in one.text


async def test_the_overview_can_show_one_store(two_stores):
    page = await two_stores.open("queue", store="mail")
    one = Page(await two_stores.client.get(page.url.join(page.links["mail"])))
    assert (one.status, one.url.params["store"]) == (200, "mail")
    assert [row for row in _rows(one) if "shop" in row] == []
    assert one.form("./#find").fields == [("store", "mail"), ("find", "")]
    assert "all stores" in one.links
    assert (await two_stores.open(store="attic")).status == 404


async def test_all_troubles_can_be_listed(two_stores, monkeypatch):
    monkeypatch.setattr(overview, "MOST_TROUBLES", 1)
    page = await two_stores.open(find="lett")
    assert page.text.count("is paused and") == 1
    every = Page(await two_stores.client.get(page.url.join(page.links["and 1 more"])))
    assert every.text.count("is paused and") == 2
    assert every.url.params["find"] == "lett"


async def test_health_is_a_page_for_people_and_json_for_programs(two_stores):
    overview = await two_stores.open()
    asked = overview.url.join(overview.links["health"])
    page = Page(await two_stores.client.get(asked, headers={"Accept": "text/html,*/*;q=0.8"}))
    assert (page.status, page.title) == (200, "2 stores answer")
    for words in ("mail memory:", "A look takes", "One every", "15 s", "0 pages are open"):
        assert words in page.text
    answer = (await two_stores.client.get(asked)).json()
    assert answer["stores"]["mail"]["seconds_between_looks"] == pytest.approx(15, abs=2)


def _rows(page):
    return [attributes["href"] for tag, attributes in page.elements if tag == "a" and "queue?" in attributes["href"]]


async def test_a_parent_that_waits_for_a_failed_job_is_a_trouble(browse, queue, connection, work, needs):
    async def fail(job):
        raise ValueError("the page is missing")

    with needs(queue, Feature.FLOWS):
        queue.capabilities.require(Feature.FLOWS)
        async with Flow(connection) as flow:
            tree = await flow.add(FlowJob("letters", {"n": 1}, children=[FlowJob("pages", {"n": 2}, attempts=1)]))
        browser = browse()
        assert (await browser.open("queue")).title == "letters: 1 job waits for its children"
        assert "1 parent waits" in (await browser.open()).links
        async with Queue("pages", connection) as pages, work(fail, queue="pages"):
            await eventually(lambda: _failed(pages, tree.children[0].job.id))
        browser = browse()
        page = await browser.open()
        assert page.title == "letters: a job waits for a job of pages that has failed"
        assert (await browser.client.get(page.url.join(page.links["flow"]))).status_code == 200
        assert "has failed" in (await browser.open("queue")).text


async def _failed(queue, job_id):
    return (await queue.get(job_id)).state is State.FAILED


def _completed(added, started, finished, **more):
    times = {"created_at": _at(added), "started_at": _at(started), "finished_at": _at(finished)}
    return Job("1", "mail", "mail", None, State.COMPLETED, **{"attempts_made": 1, **times, **more})


def _at(second):
    return None if second is None else NOON + timedelta(seconds=second)


def test_the_latency_is_the_median_of_the_times_that_are_known():
    jobs = [_completed(0, 2, 3), _completed(0, 4, 9), _completed(0, 60, 62)]
    assert latency_of(jobs, delays=False) == Latency(4.0, 2.0)
    assert latency_of([], delays=False) == latency_of([_completed(0, None, 1)], delays=False) == Latency(None, None)


def test_the_time_before_a_job_was_due_is_no_wait():
    assert latency_of([_completed(0, 62, 63, run_at=_at(60))], delays=True) == Latency(2.0, 1.0)
    assert latency_of([_completed(0, 62, 63)], delays=True) == Latency(None, 1.0)
    assert latency_of([_completed(0, 62, 63, attempts_made=2)], delays=False) == Latency(None, 1.0)
