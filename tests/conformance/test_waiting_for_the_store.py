"""A store that is not there yet can be waited for. One that refuses is not waited for, and is no outage."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from faults.proxy import Proxy
from jobwire import InvalidOption, Queue, StoreRefused, StoreUnavailable, Worker, connect
from jobwire.sync import Queue as BlockingQueue

QUEUE = "letters"

# MongoDB's driver leaves a socket to the collector if it is closed while it connects.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.INFO, "jobwire")
    yield
    gc.collect()


@pytest.fixture
def later(remote: str) -> Later:
    return Later(remote)


class Later:
    """A port where the store can be reached once it is opened."""

    def __init__(self, url: str) -> None:
        self._inner = urlsplit(url.partition("+")[2]).port or 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = url.replace(f":{self._inner}/", f":{self.port}/")
        if "mongodb" in url:
            self.url += "&serverSelectionTimeoutMS=500"  # the driver waits by itself, for 20 s unless told

    def opened(self) -> Proxy:
        """From now on the store is there."""
        return Proxy(self._inner, self.port)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "jobwire.connection"]


async def test_a_queue_waits_for_its_store(
    later: Later, caplog: pytest.LogCaptureFixture, eventually: Callable[..., Any]
) -> None:
    queue = Queue(QUEUE, later.url, wait_for_store=60)
    opening = asyncio.create_task(queue.open())
    await eventually(lambda: lines(caplog))
    assert not opening.done()
    async with later.opened():
        await opening
        await queue.add(1)
        await queue.close()
    first, last = lines(caplog)
    assert "is unavailable" in first
    assert "waiting up to 60 s for the store" in first
    assert "the store answers after" in last


async def test_a_worker_waits_for_its_store(
    later: Later, caplog: pytest.LogCaptureFixture, eventually: Callable[..., Any], finished: Callable[..., Any]
) -> None:
    async def handle(job: Any) -> int:
        return job.data + 1

    worker = Worker(QUEUE, handle, later.url, wait_for_store=timedelta(minutes=1))
    running = asyncio.create_task(worker.run(signals=False))
    await eventually(lambda: lines(caplog))
    async with later.opened():
        async with Queue(QUEUE, later.url) as queue:
            job = await queue.add(1)
            assert (await finished(queue, job.id)).result == 2
        await worker.stop()
        await running


async def test_a_worker_that_waits_can_be_stopped(
    later: Later, caplog: pytest.LogCaptureFixture, eventually: Callable[..., Any]
) -> None:
    worker = Worker(QUEUE, lambda job: None, later.url, wait_for_store=600)
    running = asyncio.create_task(worker.run(signals=False))
    await eventually(lambda: lines(caplog))
    await worker.stop()
    await asyncio.wait_for(running, 30)


async def test_a_connection_is_told_once_for_all_that_share_it(
    later: Later, caplog: pytest.LogCaptureFixture, eventually: Callable[..., Any]
) -> None:
    connection = connect(later.url, wait_for_store=60)
    opening = asyncio.create_task(Queue(QUEUE, connection).open())
    await eventually(lambda: lines(caplog))
    async with later.opened():
        queue = await opening
        await queue.close()
        await connection.close()


async def test_when_the_time_is_over_the_error_says_how_long_it_was(later: Later) -> None:
    queue = Queue(QUEUE, later.url, wait_for_store=0.7)
    with pytest.raises(StoreUnavailable, match=r"is unavailable.*\(waited \d+\.\d s for it\)"):
        await queue.open()
    await queue.close()


async def test_without_being_asked_nothing_waits(later: Later, caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue(QUEUE, later.url)
    with pytest.raises(StoreUnavailable, match="is unavailable"):
        await queue.open()
    assert lines(caplog) == []
    await queue.close()


async def test_a_wrong_password_is_a_refusal_and_not_waited_for(remote: str, caplog: pytest.LogCaptureFixture) -> None:
    password = urlsplit(remote.partition("+")[2]).password or ""
    began = time.monotonic()
    queue = Queue(QUEUE, remote.replace(password, "wrong-one"), wait_for_store=600)
    for _ in range(2):  # a driver may give another reason the second time
        with pytest.raises(StoreRefused) as refusal:
            await queue.open()
        assert "wrong-one" not in str(refusal.value)
    await queue.close()
    assert lines(caplog) == []
    assert time.monotonic() - began < 300


async def test_a_missing_password_is_a_refusal(remote: str) -> None:
    password = urlsplit(remote.partition("+")[2]).password or ""
    bare = remote.replace(f"jobwire:{password}@", "").replace(f":{password}@", "").replace("authSource=admin&", "")
    if "postgresql" in bare:
        bare = bare.replace("//", "//jobwire@")
    queue = Queue(QUEUE, bare)
    with pytest.raises(StoreRefused):
        await queue.open()
    await queue.close()


@pytest.mark.parametrize("wrong", [-1, "5", None, float("nan"), True])
def test_a_wait_that_is_no_duration_is_refused(url: str, wrong: Any) -> None:
    for make in (
        lambda: Queue(QUEUE, url, wait_for_store=wrong),
        lambda: connect(url, wait_for_store=wrong),
        lambda: Worker(QUEUE, lambda job: None, url, wait_for_store=wrong),
    ):
        with pytest.raises(InvalidOption, match="wait_for_store"):
            make()


def test_blocking_code_waits_too(remote: str) -> None:
    with BlockingQueue(QUEUE, remote, wait_for_store=5) as queue:
        assert queue.add(1).id
