"""Actions on more jobs than a form can name: in the background, with a page that shows their progress."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from dashboard.browsing import Browser, Page
from jobwire import NewJob, State
from jobwire.dashboard import Token, Tokens, actions, bulk
from jobwire.dashboard.pages import act as act_page
from jobwire.errors import StoreUnavailable

TOKENS = Tokens([Token(name, "admin", f"the-secret-of-{name}-of-tests") for name in ("ann", "bob")])


@pytest.fixture
def url(unique):
    return f"memory:{unique}"


def as_(name):
    return {"Authorization": f"Bearer the-secret-of-{name}-of-tests"}


def audited(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "jobwire.dashboard.audit"]


async def _preview_all(browser: Browser, verb: str, state: str = "waiting", **filters: str) -> Page:
    page = await browser.open("jobs", state=state, **filters)
    [form] = [one for one in page.forms if ("which", "matching") in one.fields]
    return await browser.send(page, form, verb)


async def _ended(browser: Browser, page: Page, eventually) -> Page:
    async def ended():
        shown = Page(await browser.client.get(page.url))
        return shown if "Done:" in shown.text or "on the way" in shown.text else None

    return await eventually(ended)


async def test_all_jobs_are_removed_in_the_background(browse, queue, caplog, eventually):
    caplog.set_level("INFO", "jobwire.dashboard.audit")
    await queue.add_many([NewJob({"n": number}, "late" if number % 10 else "early") for number in range(1500)])
    browser = browse(allow_actions=True)
    shown = await _preview_all(browser, "remove")
    assert shown.title == "Remove all 1,500 waiting jobs of letters?"
    assert (
        await browser.post(
            f"{shown.url.join('act')}", [*shown.form("act").fields[:3], ("which", "matching"), ("verb", "remove")]
        )
    ).status == 400
    page = await browser.send(shown, shown.form("act"), "remove")
    assert page.url.path == "/progress"
    ended = await _ended(browser, page, eventually)
    assert ended.title == "Removed 1,500 jobs of letters"
    assert (await queue.counts())[State.WAITING] == 0
    _, begun, done = audited(caplog)
    assert begun.endswith("store 'shop', queue 'letters': begins for all jobs with state='waiting'")
    assert done.endswith("store 'shop', queue 'letters': 1500 jobs removed; done")


async def test_the_question_counts_the_jobs_that_there_are_now(browse, queue, monkeypatch):
    monkeypatch.setattr(act_page, "MOST_JOBS", 10)
    await queue.add_many([NewJob(number) for number in range(5)])
    browser = browse(allow_actions=True)
    page = await browser.open("jobs", state="waiting")
    [form] = [one for one in page.forms if ("which", "matching") in one.fields]
    await queue.add_many([NewJob(number) for number in range(20)])
    assert (await browser.send(page, form, "remove")).title == "Remove all 25 waiting jobs of letters?"


async def test_jobs_that_fail_again_or_do_not_match_are_left_alone(browse, queue, work, eventually, monkeypatch):
    monkeypatch.setattr(act_page, "MOST_JOBS", 10)

    async def handle(job):
        raise LookupError("odd" if job.data % 2 else "even")

    await queue.add_many([NewJob(number) for number in range(40)])
    async with work(handle):
        await eventually(lambda: _failed(queue, 40))
        browser = browse(allow_actions=True)
        shown = await _preview_all(browser, "retry", "failed", error="odd")
        assert shown.title == "Retry all jobs that match, 10 or more, of letters?"
        page = await browser.send(shown, shown.form("act"), "retry")
        assert (await _ended(browser, page, eventually)).title == "Retried 20 jobs of letters"
        assert "error odd" in page.text
        await eventually(lambda: _failed(queue, 40))


async def _failed(queue, number):
    return (await queue.counts())[State.FAILED] == number


async def test_a_person_has_one_action_at_a_time_and_can_repeat_one_that_ended_on_the_way(
    browse, queue, eventually, monkeypatch, caplog
):
    caplog.set_level("INFO", "jobwire.dashboard.audit")
    monkeypatch.setattr(act_page, "MOST_JOBS", 10)
    monkeypatch.setattr(bulk, "STEP", 10)
    await queue.add_many([NewJob(number) for number in range(30)])
    remove, may_go_on, steps = actions.ACTS["remove"], asyncio.Event(), []

    async def fails_later(queue, ids):
        steps.append(ids)
        if len(steps) == 2:
            await may_go_on.wait()
            raise StoreUnavailable("redis://app:hunter2@host is gone")
        return await queue.admin.remove_many(ids)

    monkeypatch.setitem(actions.ACTS, "remove", replace(remove, run=fails_later))
    ann, bob = (browse(allow_actions=True, auth=TOKENS, headers=as_(name)) for name in ("ann", "bob"))
    bob.client._transport, bob.app = ann.client._transport, ann.app
    shown = await _preview_all(ann, "remove")
    page = await ann.send(shown, shown.form("act"), "remove")
    await eventually(lambda: len(steps) == 2)
    running = Page(await ann.client.get(page.url))
    assert running.title == "Removed 10 jobs of letters so far"
    assert ("meta", {"http-equiv": "refresh", "content": "2"}) in running.elements
    assert "so far" in (await ann.open("queue")).text
    assert (await ann.send(shown, shown.form("act"), "remove")).status == 409
    may_go_on.set()
    ended = await _ended(ann, page, eventually)
    assert ended.title == "Removed 10 jobs of letters; then it failed on the way"
    assert "hunter2" not in ended.html + " ".join(audited(caplog))
    others = await _preview_all(bob, "remove")
    page = await bob.send(others, others.form("act"), "remove")
    assert (await _ended(bob, page, eventually)).title == "Removed 20 jobs of letters"
    assert "'ann' (admin): remove" in audited(caplog)[0]


async def test_what_the_preview_offers_is_never_too_large_to_be_sent(browse, queue, eventually):
    await queue.add_many([NewJob(number, id=f"{number:03}-{'x' * 452}") for number in range(700)])
    browser = browse(allow_actions=True)
    shown = await _preview_all(browser, "remove")
    assert shown.title == "Remove 700 jobs of letters?"
    page = await browser.send(shown, shown.form("act"), "remove")
    assert (await _ended(browser, page, eventually)).title == "Removed 700 jobs of letters"


async def test_the_audit_log_names_jobs_limits_and_refusals(browse, queue, caplog, monkeypatch):
    caplog.set_level("INFO", "jobwire.dashboard.audit")
    job = await queue.add(1, delay=3600)
    browser = browse(allow_actions=True)
    page = await browser.open("job", id=job.id)
    await browser.send(page, page.form("act", "promote"), "promote")
    page = await browser.open("queue")
    await browser.send(page, page.form("limits"), concurrency="7", jobs="10", per="1m")
    await browser.send(page, page.form("limits"), concurrency="many")

    async def refuse():
        raise StoreUnavailable("gone")

    monkeypatch.setattr(browser.app.state.board.stores["shop"]._queues["letters"].admin, "pause", refuse)
    assert (await browser.send(page, page.form("pause"))).status == 503
    where = "store 'shop', queue 'letters'"
    promoted, limited, wrong, paused = audited(caplog)
    assert promoted == f"'anyone' (admin): promote, {where}, job {job.id!r}: 1 of 1 job done"
    assert limited == f"'anyone' (admin): limits (running: 7, starts: 10 in 60 s), {where}: done"
    assert wrong.startswith("'anyone' (admin): limits '', store='shop', queue='letters': refused: ")
    assert paused == f"'anyone' (admin): pause, {where}: failed: gone"
    viewer = browse(headers={})
    await viewer.post("http://dashboard.test/act", [("verb", "remove"), ("store", "shop")])
    assert audited(caplog)[-1].endswith(
        "refused: The page that you sent is out of date. Go back, reload it and try again."
    )
