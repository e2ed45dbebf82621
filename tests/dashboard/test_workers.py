"""Workers that are connected, and jobs that run or have run several times."""

from __future__ import annotations

import asyncio
import re

import pytest

from awaiting import eventually
from conformance.conftest import tries, with_attempts  # noqa: F401 a fixture
from jobwire import Queue, Worker, connect
from jobwire.boundary import Feature
from jobwire.dashboard.lifetime import spans_of


@pytest.fixture
async def running(queue, work):
    """The id of a job that runs on the worker `mailer`, as long as the test does."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def handle(job):
        begun.set()
        await ended.wait()

    job = await queue.add({"to": "ann"})
    async with work(handle, name="mailer", concurrency=2):  # a second place, for which it waits at the store
        await asyncio.wait_for(begun.wait(), 20)
        if queue.capabilities.has(Feature.WORKERS):
            await eventually(queue.admin.workers)
        yield job.id
        ended.set()


async def test_the_page_of_workers_shows_who_runs_what(browse, queue, running):
    page = await browse().open("workers")
    listed = queue.capabilities.has(Feature.WORKERS)
    assert page.title == f"letters: {'1 worker is connected, ' if listed else ''}1 job runs"
    assert running in page.links
    name = "mailer" if listed else (await queue.get(running)).worker
    assert name is None or name in page.text
    assert ("Those below" in page.text) == (not listed and name is not None)
    assert ("names no worker" in page.text) == (not listed and name is None)
    if listed:
        [worker] = await queue.admin.workers()
        assert worker.client == "" or re.search(r" \d+\.\d+", worker.client)
        assert ("Last seen" in page.text) == (worker.seen_at is not None)


async def test_the_attempt_that_runs_is_counted(browse, running):
    browser = browse()
    assert re.search(r"Attempts 1( of \d+)? runs now", (await browser.open("job", id=running)).text)
    assert not re.search(r">0<span class=\"quiet\">/", (await browser.open("jobs", state="active")).html)


async def test_an_idle_connection_is_not_the_age_of_a_worker(jobwire_valkey, unique):
    """A worker of BullMQ's data that is busy leaves the connection alone by which it is listed."""
    async with (
        connect(f"bullmq+{jobwire_valkey.url}?prefix={unique}") as connection,
        Queue("letters", connection) as queue,
        Worker("letters", print, connection, name="mailer"),
    ):
        [worker] = await eventually(queue.admin.workers)
        assert (worker.name, worker.seen_at) == ("mailer", None)


@with_attempts(2)
async def test_a_page_tells_why_earlier_attempts_are_not_drawn(browse, queue, work, finished, tries):  # noqa: F811 a fixture
    async def fail(job):
        raise ValueError("no such user")

    job = await queue.add({"to": "ann"}, **tries.job)
    async with work(fail, **tries.worker):
        await finished(queue, job.id)
    page = await browse().open("job", id=job.id)
    drawn = "attempt 1 failed after" in page.text
    known = await queue.get(job.id)
    assert known.attempts_made == 2
    if any(span.kind == "earlier" for span in spans_of(known)) and not drawn:
        assert "times of the last attempt only" in page.text
    assert drawn == queue.capabilities.has(Feature.EVENT_CONTROL)
