"""The pure parts: examples in docstrings, rates, troubles, spans of a job's life."""

from __future__ import annotations

import asyncio
import contextlib
import doctest
import importlib
import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jobwire import connect
from jobwire import dashboard as package
from jobwire.dashboard import troubles
from jobwire.dashboard.findings import examined
from jobwire.dashboard.flow_picture import in_order
from jobwire.dashboard.lifetime import spans_of
from jobwire.dashboard.pages.queue import title_of
from jobwire.dashboard.redaction import HIDDEN, Redaction
from jobwire.dashboard.render import clock
from jobwire.dashboard.series import BIN, BINS, Rates, Series
from jobwire.dashboard.store import Store
from jobwire.dashboard.values import brief, tree
from jobwire.figures import QueueFigures
from jobwire.model import Event, EventKind, Job, JobTree, State

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "module", ["actions", "at_least", "charts", "history", "links", "redaction", "troubles", "values"]
)
def test_the_examples_in_the_docstrings_hold(module):
    results = doctest.testmod(importlib.import_module(f"jobwire.dashboard.{module}"))
    assert (results.failed, results.attempted > 0) == (0, True), results


def counts(waiting=0, completed=0, failed=0):
    return {State.WAITING: waiting, State.COMPLETED: completed, State.FAILED: failed}


def test_rates_are_changes_of_counts_per_minute():
    series = Series()
    assert series.add(1000.0, counts(5))
    assert not series.add(1001.0, counts(5))
    assert series.rates(1001.0) is None
    series.add(1060.0, counts(2, completed=8, failed=2))
    rates = series.rates(1060.0)
    assert (rates.added, rates.finished, rates.failed, rates.failure_share) == (7.0, 10.0, 2.0, 0.2)


def test_only_the_last_hour_is_kept():
    series = Series()
    for number in range(BINS * 2):
        series.add(number * BIN, counts(number))
    assert len(series.bins) == BINS
    assert [one.waiting for one in series.last_hour((BINS * 2 - 1) * BIN)] == list(range(BINS, BINS * 2))
    assert series.last_hour(BINS * 4 * BIN) == []


@pytest.mark.parametrize(
    ("figures", "workers", "sentence"),
    [
        ((counts(3), 20, False), 0, "mail: 3 jobs wait and no worker is connected"),
        ((counts(3), 2, False), 0, None),
        ((counts(1), 20, True), 4, "mail is paused and 1 job waits"),
        ((counts(0), None, True), 4, None),
        ((counts(9), 600, False), 4, "mail: 9 jobs wait, the oldest for 10 min"),
        ((counts(9), 60, False), None, None),
    ],
    ids=range(6),
)
def test_troubles_are_sentences(figures, workers, sentence):
    numbers, age, paused = figures
    oldest = None if age is None else datetime.now(UTC) - timedelta(seconds=age)
    found = list(troubles.of_queue("shop", QueueFigures("mail", numbers, oldest, paused), None, workers))
    assert [one.sentence for one in found] == ([sentence] if sentence else [])


def _watched(*waiting, completed=0):
    """The half minutes of a queue in which so many jobs waited at each end."""
    series = Series()
    for number, one in enumerate(waiting):
        series.add(number * BIN, counts(one, completed=completed * number))
    return series.last_hour((len(waiting) - 1) * BIN)


@pytest.mark.parametrize(
    ("bins", "active", "workers", "flagged"),
    [
        (_watched(40, 40, 40, 40), 0, None, True),
        (_watched(3, 40), 0, None, True),
        (_watched(40), 0, None, False),  # the dashboard has only begun to look
        (_watched(0, 40, 40, 40), 0, None, False),  # they came less than two minutes ago
        (_watched(50, 45, 42, 40), 0, None, False),
        (_watched(40, 40, 40, completed=1), 0, None, False),
        (_watched(40, 40, 40, 40), 1, None, False),
        (_watched(40, 40, 40, 40), 0, 2, False),
        (_watched(40, 40), 0, 0, True),
        (_watched(0, 40), 0, 0, False),  # jobs that have just become due are old and have not waited
    ],
    ids=range(10),
)
def test_jobs_that_no_worker_takes_are_a_trouble(bins, active, workers, flagged):
    oldest = datetime.now(UTC) - timedelta(seconds=120)
    figures = QueueFigures("mail", {**counts(40), State.ACTIVE: active}, oldest, False)
    found = [one.sentence for one in troubles.of_queue("shop", figures, None, workers, bins)]
    assert ["no worker" in one and "40 jobs wait" in one for one in found] == ([True] if flagged else [])


def test_many_failures_are_a_trouble():
    series = Series()
    series.add(0.0, counts())
    series.add(60.0, counts(completed=70, failed=30))
    [found] = troubles.of_queue("shop", QueueFigures("mail", counts(), None, False), series.rates(60.0), 1)
    assert (found.sentence, found.href) == (
        "mail: 30% of the jobs that finish fail, 30 a minute",
        "failures?store=shop&queue=mail",
    )


@pytest.mark.parametrize(
    ("added", "completed", "failed", "title"),
    [
        (30, 30, 0, "mail keeps up: 30 jobs a minute"),
        (30, 29, 1, "mail keeps up: 30 jobs a minute, 1 of them fails"),
        (30, 10, 20, "mail: 20 of 30 jobs a minute fail"),
        (30, 9, 0, "mail: 30 jobs a minute are added and 9 finish"),  # the others are delayed, such as after a failure
        (0, 30, 0, "mail keeps up: 30 jobs a minute"),
        (0, 0, 0, "mail is idle"),
    ],
    ids=range(6),
)
def test_a_queue_without_waiting_jobs_is_called_what_it_is(added, completed, failed, title):
    figures = QueueFigures("mail", counts(), None, False)
    assert title_of(figures, Rates(added, completed + failed, failed)) == title


def test_the_children_of_a_flow_are_in_the_order_of_their_names():
    names = ["page 10", "cover", "page 2", "page 1"]
    trees = [JobTree(Job(str(number), "pages", name, None)) for number, name in enumerate(names)]
    assert [one.job.name for one in in_order(trees)] == ["cover", "page 1", "page 2", "page 10"]


def test_an_event_of_another_day_has_its_date():
    now = datetime.now(UTC)
    assert f">{now:%H:%M:%S}<" in clock(now)
    assert ">17 Nov 08:05:09<" in clock(datetime(2020, 11, 17, 8, 5, 9, tzinfo=UTC))


def test_a_long_list_leaves_room_for_the_fields_after_it():
    shown = tree({"lines": list(range(5000)), "to": "ann"}, Redaction())
    assert [child.label for child in shown.children] == ["lines", "to"]
    assert shown.children[0].note == "5,000 items, 4,800 of them not shown"


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def kinds(spans):
    return [(span.kind, (span.end - span.begin).total_seconds()) for span in spans]


def job(state, **fields):
    return Job("1", "mail", "mail", None, state, created_at=NOON, **fields)


def test_a_life_is_made_of_the_stored_times():
    done = job(State.COMPLETED, attempts_made=1, run_at=at(10), started_at=at(12), finished_at=at(15))
    assert kinds(spans_of(done)) == [("delayed", 10), ("waiting", 2), ("completed", 3)]
    running = job(State.ACTIVE, started_at=at(4))
    assert kinds(spans_of(running, now=at(9))) == [("waiting", 4), ("running", 5)]
    retried = job(State.FAILED, attempts_made=3, started_at=at(60), finished_at=at(61))
    assert kinds(spans_of(retried)) == [("earlier", 60), ("failed", 1)]
    assert spans_of(Job("1", "mail", "mail", None)) == []


def test_events_show_every_attempt():
    told = [(EventKind.ACTIVE, 1), (EventKind.DELAYED, 3), (EventKind.ACTIVE, 10), (EventKind.COMPLETED, 12)]
    events = [Event(str(n), kind, kind, "1", at(second)) for n, (kind, second) in enumerate(told)]
    done = job(State.COMPLETED, attempts_made=2, started_at=at(10), finished_at=at(12))
    assert kinds(spans_of(done, events)) == [("waiting", 1), ("failed", 2), ("delayed", 7), ("completed", 2)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"password": "hunter2", "n": 1}', f'{{"password": "{HIDDEN}", "n": 1}}'),
        ('not json {"password": "hunter2"', f'not json {{"password": {HIDDEN}'),
        ("Authorization: Bearer abc.def next", f"Authorization: {HIDDEN} next"),
        ("Cookie: sid=a; theme=b\nnext", f"Cookie: {HIDDEN}\nnext"),
        ("token=abc&n=1", f"token={HIDDEN}&n=1"),
        ("redis://:hunter2@host/0", "redis://:***@host/0"),
        ("redis://app:hunter2@host/0?token=abc&n=1", f"redis://app:***@host/0?token={HIDDEN}&n=1"),
        ("the passwords are fine", "the passwords are fine"),
        ("tokens: ['A', 'B'] next", f"tokens: {HIDDEN} next"),
        ("credentials={'user': 'ann', 'pin': '}P'} next", f"credentials={HIDDEN} next"),
        ("credential=Login(user='ann', pin=b'P') next", f"credential={HIDDEN} next"),
        (r'cut: {"data":"{\"tokens\":[\"A\",\"\\\"B\"],\"n\":1', rf'cut: {{"data":"{{\"tokens\":{HIDDEN},\"n\":1'),
        ('x "card of ann": 17, "ssn": 3', f'x "card of ann": {HIDDEN}, "ssn": {HIDDEN}'),
        ("tokens: [1, {2", f"tokens: {HIDDEN}"),
        ("token: 'not closed, and more", f"token: {HIDDEN}"),
    ],
)
def test_secrets_in_texts_are_hidden(text, shown):
    assert Redaction(["^ssn$", "^card"]).text(text) == shown


def test_the_beginning_of_a_long_text_shows_no_part_of_a_secret():
    long = json.dumps({"credentials": {"user": "ann", "pin": "P-17"}, "tokens": ["A-1", "B-2"], "rest": "x" * 9000})
    assert Redaction().text(long).startswith(f'{{"credentials": {HIDDEN}, "tokens": {HIDDEN}, "rest": "xxx')
    for longest in range(20, 60):
        assert "hun" not in Redaction().text("at redis://app:hunter2@host/0 password: 'hunter3' end", longest)


@pytest.mark.parametrize("part", ["x", "\\", ":", "token='", "token=[", "x://", '{"a":', "password=x;a=b"])
def test_hiding_reads_no_more_than_is_shown(part):
    """The longest text took 4.7 s when the whole of it was read. Work that grew with the square would take minutes."""
    values = [part * (5_000_000 // len(part))] * 3
    began = time.process_time()
    tree(values, Redaction())
    brief(values, Redaction())
    Redaction().text(values[0], 20_000)
    assert time.process_time() - began < 1.0


def test_the_dashboard_uses_the_public_face_of_connections_and_queues():
    for file in Path(package.__file__).parent.rglob("*.py"):
        assert not re.findall(r"\.backend\b|jobwire\.backends", file.read_text(encoding="utf-8")), file.name


async def test_an_empty_store_has_no_findings(unique):
    """Also where this jobwire has no doctor."""
    assert list(await examined(connect(f"memory:{unique}"))) == []


async def test_a_store_closes_even_if_a_driver_loses_the_cancellation(unique, monkeypatch):
    looking = asyncio.Event()

    async def look():
        looking.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    store = Store("shop", f"memory:{unique}", timeout=3)
    monkeypatch.setattr(store, "_look", look)
    store.start()
    await looking.wait()
    async with asyncio.timeout(30):
        await store.close()
