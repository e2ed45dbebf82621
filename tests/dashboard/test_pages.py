"""Every page on every protocol, and every action through its forms."""

from __future__ import annotations

import re

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from dashboard.browsing import Browser, Page
from dashboard.hostile_texts import TEXTS
from dashboard.test_hostile_texts import assert_only_text
from jobwire import Backoff, Queue, Worker, connect
from jobwire.boundary import Feature
from jobwire.dashboard import dashboard
from jobwire.flow import Flow, FlowJob
from jobwire.model import State


@pytest.fixture
async def lived_in(queue, work, eventually):
    """The queue with a failed, a completed, a delayed and a waiting job, by state."""

    async def handle(job):
        if job.data["to"] == "nobody":
            raise LookupError(f"user {job.data['to']} is gone")
        return {"sent": job.data["to"]}

    jobs = {State.FAILED: await queue.add({"to": "nobody"}), State.COMPLETED: await queue.add({"to": "ann"})}
    async with work(handle):
        for state, job in jobs.items():
            await eventually(lambda job=job, state=state: _is(queue, job, state))
    jobs[State.DELAYED] = await queue.add({"to": "later"}, delay=3600)
    jobs[State.WAITING] = await queue.add({"to": "now", "password": "hunter2"})
    return jobs


async def _is(queue, job, state):
    found = await queue.get(job.id)
    return found is not None and found.state is state


async def test_every_page_shows_what_the_queue_holds(browse, queue, lived_in):
    browser = browse()
    overview = await browser.open()
    assert overview.title == "All is well: 1 queue"
    assert "letters" in overview.links
    assert re.search(r'<td class="figure wide">[\d.]+ m?s</td>', overview.html), "no running time"
    page = await browser.open("queue")
    assert page.title.startswith("letters: 1 job waits, for ")
    for state, data in (("waiting", "now"), ("delayed", "later"), ("completed", "ann"), ("failed", "nobody")):
        listed = await browser.open("jobs", state=state)
        assert listed.title == f"letters: 1 {state} job"
        assert ("<th>Name</th>" in listed.html) == queue.capabilities.has(Feature.JOB_NAMES)
        assert data in listed.text
        job = await browser.open("job", id=lived_in[State(state)].id)
        assert job.status == 200
        assert data in job.text
        assert "hunter2" not in job.html + listed.html
    failed = await browser.open("job", id=lived_in[State.FAILED].id)
    assert failed.title.endswith("failed after 1 attempt: LookupError")
    assert "user nobody is gone" in failed.text
    causes = await browser.open("failures")
    assert causes.title == "letters: 1 job failed, all with LookupError"
    assert (await browser.open("workers")).title.endswith("0 jobs run")
    for name, feature in (("schedules", Feature.SCHEDULES), ("events", Feature.EVENTS)):
        status = (await browser.open(name)).status
        assert status == (200 if queue.capabilities.has(feature) else 409)
    health = (await browser.client.get("/health")).json()
    assert health["stores"]["shop"]["status"] == health["status"] == "ok"


async def test_a_job_page_shows_logs_progress_and_the_life_of_the_job(browse, queue, work, finished):
    async def handle(job):
        await job.log("opened the letter")
        await job.update_progress(40)

    job = await queue.add({"to": "ann"})
    async with work(handle):
        await finished(queue, job.id)
    page = await browse().open("job", id=job.id)
    assert "opened the letter" in page.text
    assert "last attempt ran" in page.text or "waited and ran" in page.text
    assert any(tag == "svg" for tag, _ in page.elements)
    assert f"jobwire job letters {job.id} --url" in page.text


async def test_pages_of_many_jobs_follow_one_another(browse, queue):
    added = {(await queue.add({"n": number})).id for number in range(60)}
    browser = browse()
    page = await browser.open("jobs", state="waiting")
    seen = _jobs_of(page)
    assert len(seen) == 50
    page = Page(await browser.client.get(page.url.join(page.links["Next page"])))
    assert _jobs_of(page) | seen == added
    assert "Next page" not in page.links
    assert "First page" in page.links


def _jobs_of(page):
    links = [attributes.get("href") or "" for tag, attributes in page.elements if tag == "a"]
    return {page.url.join(link).params["id"] for link in links if link.startswith("job?")}


async def test_filters_find_jobs_by_name_error_and_age(browse, lived_in):
    browser = browse()
    assert (await browser.open("jobs", state="failed", error="NOBODY")).title == "letters: 1 failed job matches"
    assert (await browser.open("jobs", state="failed", error="timeout")).title == "letters: 0 failed jobs match"
    assert (await browser.open("jobs", state="failed", older="1h")).title == "letters: 0 failed jobs match"
    assert (await browser.open("jobs", state="failed", younger="1h")).title == "letters: 1 failed job matches"
    assert (await browser.open("jobs", state="failed", younger="0s")).title == "letters: 0 failed jobs match"
    assert (await browser.open("jobs", state="failed", name="ETTER")).title == "letters: 1 failed job matches"
    assert (await browser.open("jobs", state="failed", name="parcel")).title == "letters: 0 failed jobs match"
    assert (await browser.open("jobs", state="failed", **{"class": "LookupError"})).title.endswith(
        "1 failed job matches"
    )
    wrong = await browser.open("jobs", state="failed", older="soon")
    assert (wrong.status, "write a duration such as" in wrong.text) == (400, True)
    assert (await browser.open("jobs", state="lost")).status == 400


async def test_a_job_that_waits_for_its_next_attempt_is_listed_with_its_error(unique, eventually):
    async def fail(job):
        raise LookupError("user ann is gone")

    async with connect(f"memory:{unique}") as connection, Queue("letters", connection) as queue:
        job = await queue.add({"to": "ann"}, attempts=2, backoff=Backoff.fixed(3600))
        async with Worker("letters", fail, connection):
            await eventually(lambda: _is(queue, job, State.DELAYED))
        browser = Browser(dashboard({"shop": connection}), {})
        assert "after user ann is gone" in (await browser.open("jobs", state="delayed")).text
        await browser.close()
        await browser.app.state.board.close()


async def test_a_failed_job_is_retried_from_its_page(browse, queue, lived_in, caplog):
    caplog.set_level("INFO", "jobwire.dashboard.audit")
    browser, job = browse(allow_actions=True), lived_in[State.FAILED]
    page = await browser.open("job", id=job.id)
    after = await browser.send(page, page.form("act", "retry"), "retry")
    assert "Retried 1 job." in after.text
    assert after.url.path == "/job"
    assert (await queue.get(job.id)).state is State.WAITING
    [line] = [record.getMessage() for record in caplog.records if record.name == "jobwire.dashboard.audit"]
    assert line == f"'anyone' (admin): retry, store 'shop', queue 'letters', job {job.id!r}: 1 of 1 job done"


async def test_selected_jobs_are_shown_before_they_are_removed(browse, queue, lived_in):
    browser, job = browse(allow_actions=True), lived_in[State.COMPLETED]
    page = await browser.open("jobs", state="completed")
    shown = await browser.send(page, page.form("preview", "remove"), "remove", id=job.id)
    assert shown.title == "Remove 1 job of letters?"
    assert "ann" in shown.text
    assert await queue.get(job.id) is not None
    after = await browser.send(shown, shown.form("act"), "remove")
    assert "Removed 1 job." in after.text
    assert await queue.get(job.id) is None
    again = await browser.send(shown, shown.form("act"), "remove")
    assert "Removed 0 jobs. Not removed: 1 job, not in the queue." in again.text


async def test_all_jobs_with_one_cause_are_retried(browse, queue, lived_in):
    browser = browse(allow_actions=True)
    causes = await browser.open("failures")
    shown = await browser.send(causes, causes.form("preview", "retry"), "retry")
    assert shown.title == "Retry 1 job of letters?"
    await browser.send(shown, shown.form("act"), "retry")
    assert (await queue.counts())[State.FAILED] == 0


async def test_delayed_jobs_are_promoted_and_waiting_ones_cancelled(browse, queue, lived_in, needs):
    browser = browse(allow_actions=True)
    page = await browser.open("job", id=lived_in[State.DELAYED].id)
    await browser.send(page, page.form("act", "promote"), "promote")
    assert (await queue.get(lived_in[State.DELAYED].id)).state is State.WAITING
    page = await browser.open("job", id=lived_in[State.WAITING].id)
    with needs(queue, Feature.CANCEL):
        queue.capabilities.require(Feature.CANCEL)
        shown = await browser.send(page, page.form("preview", "cancel"), "cancel")
        await browser.send(shown, shown.form("act"), "cancel")
        assert (await queue.get(lived_in[State.WAITING].id)).state is State.CANCELLED


async def test_a_queue_is_paused_resumed_and_limited(browse, queue):
    await queue.add({"n": 1})
    browser = browse(allow_actions=True)
    page = await browser.open("queue")
    page = await browser.send(page, page.form("pause"))
    assert page.title.startswith("letters is paused")
    assert await queue.admin.paused()
    page = await browser.send(page, page.form("resume"))
    assert "The queue is resumed." in page.text
    assert not await queue.admin.paused()
    if queue.capabilities.has(Feature.LIMITS):
        page = await browser.send(page, page.form("limits"), concurrency="7", jobs="10", per="1m")
        assert "at most 7" in page.text
        assert "at most 10 in 60 s" in page.text
        refused = await browser.send(page, page.form("limits"), concurrency="many")
        assert (refused.status, (await queue.admin.limits()).concurrency) == (400, 7)


async def test_schedules_show_their_next_runs_in_their_zone(browse, queue):
    zone = {"tz": "Asia/Tokyo"} if queue.capabilities.has(Feature.SCHEDULE_TZ) else {}
    await queue.schedule("nightly", cron="0 3 * * *", data={"token": "t-17"}, **zone)
    page = await browse().open("schedules")
    assert page.title.startswith("letters: 1 schedule, the next run in")
    assert page.text.count(f"03:00:00 {'JST' if zone else 'UTC'}") == 5
    assert "t-17" not in page.html


async def test_a_flow_is_drawn_from_its_root_whichever_job_is_looked_at(browse, queue, connection, needs):
    browser = browse()
    with needs(queue, Feature.FLOWS):
        queue.capabilities.require(Feature.FLOWS)
        async with Flow(connection) as flow:
            hostile = FlowJob("pages", {"n": 2}, name=TEXTS[3])
            chapter = FlowJob("pages", {"n": 1}, name="chapter", children=[hostile])
            tree = await flow.add(FlowJob("letters", {"book": 1}, name="book", children=[chapter]))
        [inner] = tree.children
        page = await browser.open("job", queue="pages", id=inner.children[0].job.id)
        assert page.links[f"pages {inner.job.id}"] == f"job?store=shop&queue=pages&id={inner.job.id}"
        picture = Page(await browser.client.get(page.url.join(page.links["as a picture"])))
        assert picture.title.endswith("0 of 3 jobs completed")
        assert {tree.job.id, inner.job.id, inner.children[0].job.id} <= _jobs_of(picture)
        assert "pwned(3)" in picture.text
        assert_only_text([page, picture])
        parent = await browser.open("job", id=tree.job.id)
        assert "as a picture" in parent.links
        await queue.admin.remove(tree.job.id, children=False)
        orphan = await browser.open("flow", queue="pages", id=inner.children[0].job.id)
        assert orphan.title.startswith(f"Flow pages {inner.job.id[:8]}")


async def test_an_unknown_queue_is_not_made_by_looking_at_it(browse, queue, connection):
    browser = browse(allow_actions=True)
    for name in ("queue", "jobs", "failures", "workers", "schedules", "events", "job"):
        page = await browser.open(name, queue="lettres", id="1")
        assert page.status == 404, page.text
    assert not await connection.has_queue("lettres")


async def test_it_can_be_mounted_anywhere(connection, queue):
    await queue.add({"n": 1})
    inner = dashboard({"shop": connection})
    browser = Browser(Starlette(routes=[Mount("/ops/jobs", inner)]), {}, "/ops/jobs/")
    try:
        overview = Page(await browser.client.get("/ops/jobs"))
        assert overview.url.path == "/ops/jobs/"
        for page in (overview, Page(await browser.client.get("/ops/jobs/not/a/page"))):
            for tag, attributes in page.elements:
                for name in ("href", "src"):
                    if attributes.get(name) and (tag != "a" or page is not overview):
                        found = await browser.client.get(page.url.join(attributes[name]))
                        assert found.status_code == (404 if attributes[name] == "#main" else 200)
        page = Page(await browser.client.get(overview.url.join(overview.links["letters"])))
        assert (page.status, page.url.path) == (200, "/ops/jobs/queue")
        assert [one.path for one in browser.client.cookies.jar] == ["/ops/jobs/"]
    finally:
        await browser.close()
        await inner.state.board.close()
