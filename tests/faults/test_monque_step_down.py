"""A primary that steps down: an idle worker is notified of new jobs again afterwards."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymongo import MongoClient
from pymongo.errors import AutoReconnect

from awaiting import eventually
from jobwire import Queue, Worker, embedded
from jobwire.embedded import Server
from jobwire.native import MonqueWorker

pytestmark = pytest.mark.slow

PATIENT = {"lease": 2.0, "recover_every": 0.3, "max_stalled": 1000, "native": MonqueWorker(max_retries=1000)}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A durable server of the test's own: this one gets hurt."""
    with embedded.mongo(tmp_path / "mongo") as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return f"monque+{server.url.replace('/?', '/faults?')}"


def step_down(server: Server) -> None:
    """The only member gives up being primary for two seconds; it breaks every connection as it does."""
    with MongoClient(server.url) as client, contextlib.suppress(AutoReconnect):
        client.admin.command({"replSetStepDown": 2, "force": True})


async def test_an_idle_worker_hears_of_work_again_after_the_primary_stepped_down(server, url, no_polling):
    seen: list[str] = []

    async def handler(job):
        seen.append(job.data)

    async with Queue("work", url) as queue, Worker("work", handler, url, **PATIENT) as worker:
        wakeup = worker.connection.backend._wakeup
        await eventually(lambda: wakeup.listening)
        await asyncio.to_thread(step_down, server)
        await queue.add("first after the election")
        await eventually(lambda: "first after the election" in seen)
        await eventually(lambda: wakeup.listening)
        await queue.add("next")
        await eventually(lambda: "next" in seen)
