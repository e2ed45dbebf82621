"""A look costs little however large the store is, and open pages share what they need."""

from __future__ import annotations

import asyncio
import re

import pytest

from dashboard.browsing import Browser
from dashboard.test_live import streamed
from jobwire import NewJob, State
from jobwire.boundary import QueueFigures, Reading, Turnover
from jobwire.dashboard import dashboard, queue_names
from jobwire.dashboard import store as store_module
from jobwire.dashboard.pages import queue as queue_page
from jobwire.dashboard.queue_names import QueueNames
from jobwire.dashboard.series import Series
from jobwire.dashboard.store import MOST_COUNTED, Store
from jobwire.errors import StoreUnavailable


@pytest.fixture
def url(unique):
    return f"memory:{unique}"


class Keyspace:
    """A store of many keys, with a queue in some thousands of them."""

    def __init__(self, names):
        self.names = names
        self.steps = 0

    async def search(self, cursor):
        self.steps += 1
        at = int(cursor or 0)
        return [name for name in self.names[at : at + 1] if name], str(at + 1) if at + 1 < len(self.names) else None


async def test_a_search_for_queues_goes_on_from_look_to_look(monkeypatch):
    monkeypatch.setattr(queue_names, "FIRST_STEPS", 3)
    monkeypatch.setattr(queue_names, "STEPS", 2)
    store, names = Keyspace(["a", "", "b", "", "c"]), QueueNames()
    assert (await names.go_on(store.search), store.steps, names.complete) == (["a", "b"], 3, False)
    assert (await names.go_on(store.search), store.steps, names.complete) == (["a", "b", "c"], 5, True)
    store.names = ["d", "", "", "", "c"]
    assert await names.go_on(store.search) == ["a", "b", "c", "d"]
    await names.go_on(store.search)
    assert await names.go_on(store.search) == ["c", "d"]
    assert store.steps == 10


def test_the_turnover_counts_where_counts_stop():
    series = Series()
    capped = {State.WAITING: 10, State.COMPLETED: 10, State.FAILED: 0}
    series.add(1000.0, capped, Turnover(0, 0, 0))
    series.add(1060.0, capped, Turnover(30, 20, 4))
    rates = series.rates(1060.0)
    assert rates is not None
    assert (rates.added, rates.finished, rates.failed) == (30.0, 24.0, 4.0)


async def test_a_count_that_was_stopped_is_shown_with_a_plus(connection, queue, monkeypatch):
    await queue.add_many([NewJob(number) for number in range(3)])
    board = dashboard({"shop": connection})
    counts = {State.WAITING: 10_000, State.FAILED: 7}
    known = QueueFigures(queue.name, counts, None, None, frozenset({State.WAITING}))

    async def figures(names, most, since):
        return Reading([known])

    monkeypatch.setattr(connection.backend.queue_list, "figures", figures)
    browser = Browser(board, {})
    try:
        page = await browser.open("queue", store="shop", queue=queue.name)
        assert page.title == f"{queue.name}: 10,000+ jobs wait"
        assert "waiting 10,000+" in page.text
        assert "failed 7 " in page.text
    finally:
        await browser.close()
        await board.state.board.close()


async def test_fewer_jobs_are_counted_while_looks_take_long(connection):
    store = Store("shop", connection, 1.0)
    asked = []
    for took in (0.1, 2.5, 2.5, 2.5, 1.0, 0.1, 0.1, 0.1):
        store._adapt(took)
        asked.append(store._most)
    assert asked == [MOST_COUNTED, 1000, 100, 100, 100, 1000, 10_000, 10_000]


async def test_open_pages_share_a_drawing_but_not_the_token_of_its_forms(connection, queue, monkeypatch):
    await queue.add(1)
    drawn = []
    draw = queue_page.title_of

    def counted(figures, rates):
        drawn.append(figures.name)
        return draw(figures, rates)

    monkeypatch.setattr(queue_page, "title_of", counted)
    app = dashboard({"shop": connection}, allow_actions=True)
    await app.state.board.stores["shop"]._look()
    monkeypatch.setattr(Store, "start", lambda self: None)
    where = f"store=shop&queue={queue.name}".encode()
    async with streamed(app, "/queue", where) as one, streamed(app, "/queue", where) as other:
        pages = await asyncio.gather(one(), other())
    tokens = [re.findall(r'name="form_token" value="(\w+)"', " ".join(page.values())) for page in pages]
    assert len(drawn) == 1
    assert [len(set(one)) for one in tokens] == [1, 1]
    assert tokens[0] != tokens[1]
    await app.state.board.close()


async def test_failures_are_not_read_again_for_each_drawing_until_something_is_done(connection, queue):
    store = Store("shop", connection, 1.0)
    asked = []

    async def question():
        asked.append(1)
        return len(asked)

    answers = [await store.kept("failures", 60, question) for _ in range(3)]
    store.outdate()
    assert [*answers, await store.kept("failures", 60, question)] == [1, 1, 1, 2]


async def test_a_look_follows_at_once_when_something_was_changed(connection, monkeypatch):
    store = Store("shop", connection, 5.0)
    looks: asyncio.Queue[None] = asyncio.Queue()
    go_on = asyncio.Event()

    async def look():
        looks.put_nowait(None)
        await go_on.wait()

    monkeypatch.setattr(store, "_look", look)
    monkeypatch.setattr(store_module, "_SHARE", 10**9)  # any look is followed by the longest break
    store.start()
    try:
        await looks.get()
        store.outdate()
        shown = asyncio.create_task(store.fresh())
        go_on.set()
        async with asyncio.timeout(10):
            await shown
            await looks.get()  # a look that was under way knows nothing of the change
    finally:
        await store.close()


async def test_a_store_that_answers_again_is_looked_at_at_once(connection, monkeypatch):
    store = Store("shop", connection, 5.0)
    looks: asyncio.Queue[None] = asyncio.Queue()
    answers = iter([False, False])

    async def look():
        looks.put_nowait(None)
        raise StoreUnavailable("no answer")

    async def has_queue(name):
        if not next(answers, True):
            raise StoreUnavailable("no answer")
        return False

    monkeypatch.setattr(store, "_look", look)
    monkeypatch.setattr(connection, "has_queue", has_queue)
    monkeypatch.setattr(store_module, "_SHARE", 10**9)  # any look is followed by the longest break
    monkeypatch.setattr(store_module, "_ASK_AGAIN", 0.01)
    store.start()
    try:
        async with asyncio.timeout(10):
            await looks.get()
            await looks.get()
    finally:
        await store.close()


async def test_a_page_of_jobs_counts_what_it_shows_and_not_what_the_last_look_found(connection, queue, monkeypatch):
    await queue.add(1)
    app = dashboard({"shop": connection})
    await app.state.board.stores["shop"]._look()
    monkeypatch.setattr(Store, "start", lambda self: None)
    await queue.add(2)
    browser = Browser(app, {})
    try:
        assert (await browser.open("jobs", queue=queue.name)).title == f"{queue.name}: 2 waiting jobs"
        await queue.add_many([NewJob(number) for number in range(98)])
        page = await browser.open("jobs", queue=queue.name)
        assert page.title == f"{queue.name}: 50+ waiting jobs"
    finally:
        await browser.close()
        await app.state.board.close()
