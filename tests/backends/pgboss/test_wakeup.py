"""A worker is woken by notifications, and looks for itself where one may have been missed."""

from __future__ import annotations

import asyncio

from awaiting import eventually
from jobwire.backends.pgboss.work.wakeup import Wakeup
from jobwire.urls import parse


async def test_a_worker_whose_listener_came_late_does_not_rely_on_it_once(url):
    """Its first claim came before the notifications: a job that was added between the two was announced to no one."""
    wakeup = Wakeup(parse(url).driver_url, "the test's server", "some_schema")
    starting = asyncio.create_task(wakeup.start("mail"))
    await asyncio.sleep(0)  # it has begun to connect
    starting.cancel()
    try:
        await eventually(lambda: wakeup.listening)
        assert await wakeup.wait("mail", 60)
        assert not await wakeup.wait("mail", 0.01)
    finally:
        await wakeup.close()


async def test_a_worker_that_listens_before_its_first_claim_is_not_woken_for_nothing(url):
    wakeup = Wakeup(parse(url).driver_url, "the test's server", "some_schema")
    try:
        await wakeup.start("mail")
        assert not await wakeup.wait("mail", 0.01)
    finally:
        await wakeup.close()
