"""Live updates, and stores that do not answer."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from dashboard.browsing import Browser, Page
from faults.proxy import Proxy
from jobwire import Queue, connect
from jobwire.dashboard import dashboard
from jobwire.dashboard import live as live_module
from jobwire.dashboard.app import PAGES
from jobwire.dashboard.store import Store


@pytest.fixture
def url(unique):
    return f"memory:{unique}"


@contextlib.asynccontextmanager
async def streamed(app, path, query=b""):
    """Opens the stream of a page as EventSource does. Yields a function that returns the next message."""
    sent: asyncio.Queue = asyncio.Queue()
    gone = asyncio.Event()

    async def receive():
        await gone.wait()
        return {"type": "http.disconnect"}

    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": query, "root_path": "", "scheme": "http", "server": ("dashboard.test", 80),
        "headers": [(b"accept", b"text/event-stream"), (b"host", b"dashboard.test")],
    }  # fmt: skip
    task = asyncio.create_task(app(scope, receive, sent.put))
    start = await sent.get()
    assert (start["status"], dict(start["headers"])[b"content-type"]) == (200, b"text/event-stream; charset=utf-8")

    async def next_message():
        while True:
            message = await asyncio.wait_for(sent.get(), 20)
            text = message.get("body", b"").decode()
            if text.startswith("data: "):
                return json.loads(text.removeprefix("data: "))
            if not message.get("more_body"):
                return None

    try:
        yield next_message
    finally:
        gone.set()
        await asyncio.wait_for(task, 20)


@pytest.mark.slow
async def test_an_open_page_gets_the_parts_that_have_changed_and_no_others(connection, queue):
    await queue.add({"n": 0})
    app = dashboard({"shop": connection})
    board = app.state.board
    try:
        async with streamed(app, "/queue", b"store=shop&queue=letters") as next_message:
            first = await next_message()
            assert first["title"].startswith("letters: 1 job waits")
            expected = "tabs charts facts failed period troubles stale pause bulk title problem"
            assert set(expected.split()) == set(first)
            assert board.stores["shop"].watchers == board.streams == 1
            await queue.add({"n": 1})
            changed = await next_message()
            while "tabs" not in changed:
                changed = await next_message()
            assert changed["title"].startswith("letters: 2 jobs wait")
            assert ">2</b>" in changed["tabs"]
            assert "pause" not in changed
        assert board.stores["shop"].watchers == board.streams == 0
    finally:
        await board.close()


async def test_every_page_has_a_stream_of_its_parts(connection, queue):
    job = await queue.add({"n": 1})
    app = dashboard({"shop": connection}, allow_actions=True)
    try:
        for path in ("/", "/health", "/jobs", "/job", "/failures", "/workers", "/schedules", "/events"):
            query = b"" if path in ("/", "/health") else f"store=shop&queue=letters&id={job.id}".encode()
            async with streamed(app, path, query) as next_message:
                parts = await next_message()
                assert len(parts) > 2, path
                assert all(isinstance(html, str) for html in parts.values())
    finally:
        await app.state.board.close()


async def test_the_page_of_a_job_that_is_removed_states_it_and_can_no_longer_be_used(connection, queue):
    _, job = await queue.add({"n": 1}), await queue.add({"n": 2})
    app = dashboard({"shop": connection}, allow_actions=True)
    try:
        async with streamed(app, "/job", f"store=shop&queue=letters&id={job.id}".encode()) as next_message:
            assert (await next_message())["problem"] == ""
            await queue.admin.remove(job.id)
            gone = await next_message()
            while not gone.get("problem"):
                gone = await next_message()
            assert "data-gone>letters has no job" in gone["problem"]
    finally:
        await app.state.board.close()


async def test_streams_end_when_the_server_stops(connection, queue):
    app = dashboard({"shop": connection})
    async with streamed(app, "/") as next_message:
        await next_message()
        app.state.board.stop()
        assert await next_message() is None
    await app.state.board.close()


async def test_a_page_that_is_closed_before_its_question_is_asked_asks_nothing(connection):
    store, asked = Store("shop", connection, 1.0), []

    async def question():
        asked.append(1)

    task = asyncio.create_task(store.ask(question))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not asked
    await store.close()


async def test_too_many_open_pages_are_refused(connection, queue, monkeypatch):
    monkeypatch.setattr(live_module, "MOST_STREAMS", 0)
    browser = Browser(dashboard({"shop": connection}), {"Accept": "text/event-stream"})
    try:
        assert (await browser.open()).status == 503
    finally:
        await browser.close()
        await browser.app.state.board.close()


@pytest.mark.parametrize("path", sorted(PAGES.keys() - {"/campaign", "/campaigns", "/history"}))
async def test_a_page_is_drawn_before_the_first_look_at_its_store_has_ended(path, connection, queue, monkeypatch):
    job = await queue.add({"n": 0})
    monkeypatch.setattr(Store, "start", lambda self: None)
    app = dashboard({"shop": connection}, timeout=0.1)
    browser = Browser(app, {})
    try:
        page = await browser.open(path.removeprefix("/"), id=job.id)
        assert page.status == 200
        assert ("No answer yet from shop" if path == "/" else "letters") in page.title
    finally:
        await browser.close()
        await app.state.board.close()


@pytest.mark.slow
async def test_a_store_that_stops_answering_shows_its_last_figures_as_stale(jobwire_valkey, unique, eventually):
    port = int(jobwire_valkey.url.rpartition(":")[2].partition("/")[0])
    async with (
        connect(f"bullmq+{jobwire_valkey.url}?prefix={unique}") as direct,
        Queue("letters", direct) as queue,
        Proxy(port) as proxy,
    ):
        await queue.add({"n": 1})
        slow = f"bullmq+{proxy.through(jobwire_valkey.url)}?prefix={unique}"
        app = dashboard({"shop": slow, "other": direct}, timeout=0.3)
        browser = Browser(app, {})
        try:
            await eventually(lambda: _shows(browser, "queue", "letters: 1 job waits"))
            proxy.swallow()
            stale = await eventually(lambda: _shows(browser, "", "Store shop can't be read; its figures are"))
            assert stale.text.count("letters") >= 2  # of both stores, one of them stale
            assert "stale" in stale.text
            async with streamed(app, "/queue", b"store=shop&queue=letters") as next_message:
                assert "These figures are" in (await next_message())["stale"]
            page = await browser.open("queue")
            assert (page.status, page.title.startswith("letters: 1 job waits")) == (200, True)
            assert "These figures are" in page.text
            for name in ("jobs", "job", "failures", "workers"):
                page = await browser.open(name, id="1")
                assert (page.status, "did not answer within 0.25 s" in page.text) == (503, True)
                assert ("waiting 1" in page.text, "These figures are" in page.text) == (True, True), page.text
            health = await browser.client.get("/health")
            assert (health.status_code, health.json()["stores"]["other"]["status"]) == (503, "ok")
            page = Page(await browser.client.get("/health", headers={"Accept": "text/html"}))
            assert (page.status, page.title) == (503, "No answer from shop")
            proxy.flow()
            await eventually(lambda: _answers(browser))
        finally:
            proxy.flow()
            await browser.close()
            await app.state.board.close()


async def _answers(browser):
    shown = await browser.open("queue")
    return "letters: 1 job waits" in shown.text and "These figures are" not in shown.text


async def _shows(browser, page, text):
    shown = await browser.open(page)
    return shown if text in shown.text else None


async def test_a_store_that_never_answers_leaves_the_others_alone(connection, queue):
    await queue.add({"n": 1})
    ended = asyncio.Event()

    async def take(reader, writer):
        await ended.wait()
        writer.close()

    silent = await asyncio.start_server(take, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    app = dashboard({"shop": connection, "silent": f"bullmq+redis://127.0.0.1:{port}/0"}, timeout=0.2)
    browser = Browser(app, {})
    try:
        page = await browser.open()
        assert (page.status, "letters" in page.links) == (200, True)
        assert (await browser.open("queue", store="silent")).status == 503
    finally:
        await browser.close()
        await app.state.board.close()
        ended.set()
        silent.close()
        await silent.wait_closed()
