"""Texts that try to be markup or script, wherever a store can hold them, on every protocol."""

from __future__ import annotations

import pytest

from dashboard.browsing import Browser
from dashboard.hostile_texts import MARKERS, TEXTS
from jobwire import Queue, connect
from jobwire.boundary import Feature
from jobwire.dashboard import dashboard
from jobwire.errors import InvalidOption

ALLOWED = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "p", "span", "main", "h1", "h2"),
    *("div", "form", "label", "input", "button", "table", "thead", "tr", "th", "tbody", "td", "section", "ul", "ol"),
    *("li", "b", "small", "code", "dl", "dt", "dd", "dialog", "kbd", "details", "summary", "figure", "figcaption"),
    *("svg", "line", "polyline", "rect", "pre", "time", "progress", "g", "path", "text", "circle", "h3"),
}
"""The elements that templates have."""
HOSTILE = "x<img/src=x/onerror=alert(1)>&\"'"


@pytest.fixture
async def queue(connection):
    """A queue with a hostile name, where the protocol takes one."""
    try:
        async with Queue(HOSTILE, connection) as queue:
            yield queue
    except InvalidOption:
        async with Queue("letters", connection) as queue:
            yield queue


async def _schedule(queue):
    try:
        await queue.schedule(TEXTS[1], cron="0 3 * * *", data={"text": TEXTS[0]})
    except InvalidOption:
        await queue.schedule("nightly", cron="0 3 * * *", data={"text": TEXTS[0]})


async def test_hostile_texts_are_shown_as_text(browse, queue, work, finished):
    async def handle(job):
        for text in TEXTS:
            await job.log(text)
        raise ValueError(" ".join(TEXTS))

    name = {"name": TEXTS[0]} if queue.capabilities.has(Feature.JOB_NAMES) else {}
    job = await queue.add({text: text for text in TEXTS}, **name)
    async with work(handle, queue=queue.name):
        await finished(queue, job.id)
    await _schedule(queue)
    browser = browse(allow_actions=True)
    overview = await browser.open(find=TEXTS[0])
    pages = [overview]
    for page in ("queue", "jobs", "job", "failures", "workers", "schedules", "events"):
        if page != "events" or queue.capabilities.has(Feature.EVENTS):
            shown = await browser.open(page, queue=queue.name, id=job.id, state="failed", error=TEXTS[0])
            assert shown.status == 200, (page, shown.text)
            pages.append(shown)
    pages += [await browser.open("jobs", queue=text, state=text) for text in TEXTS]
    assert_only_text(pages)
    assert all(marker in pages[3].text for marker in MARKERS)  # the page of the job shows them all


async def test_a_name_cannot_turn_round_the_sentence_that_it_stands_in(unique):
    turning = "exe.\u202egnp"
    async with connect(f"memory:{unique}") as connection, Queue(turning, connection) as queue:
        await queue.add(1, id=turning, name=turning)
        await queue.admin.pause()
        browser = Browser(dashboard({"shop": connection}, allow_actions=True), {})
        pages = [await browser.open()]
        pages += [await browser.open(page, queue=turning) for page in ("queue", "jobs", "workers")]
        [form] = [one for one in pages[2].forms if ("which", "matching") in one.fields]
        pages.append(await browser.send(pages[2], form, "remove"))
        assert pages[-1].title == r"Remove 1 job of exe.\u202egnp?"
        assert [page.title for page in pages if "\u202e" in page.text] == []
        await browser.close()
        await browser.app.state.board.close()


def assert_only_text(pages):
    """Raises if a page has an element or attribute that no template has."""
    for page in pages:
        for tag, attributes in page.elements:
            assert tag in ALLOWED, (page.url, tag, attributes)
            assert not any(one.startswith("on") or one == "style" for one in attributes), (page.url, tag, attributes)
            assert not any((attributes.get(one) or "").lower().startswith("javascript:") for one in ("href", "src"))
