"""Each way in which the data of a BridgeMQ namespace goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import redis.asyncio as redis

from awaiting import eventually
from jobwire import Queue, Target, Worker
from jobwire.backends.bridgemq.connection import side_version
from jobwire.doctor import Severity

from .conftest import Break, finding


@dataclass(frozen=True)
class Broken:
    """A queue, and the driver's connection to its server."""

    queue: Queue
    client: redis.Redis
    base: str


@pytest.fixture
async def broken(bridgemq_url: str, unique: str, client: redis.Redis) -> AsyncIterator[Broken]:
    async with Queue("emails", bridgemq_url) as queue:
        yield Broken(queue, client, f"{unique}:")


async def _data_vanishes(broken: Broken) -> None:
    job = await broken.queue.add(1)
    await broken.client.delete(f"{broken.base}jobs:data:{job.id}")


async def _lock_stays(broken: Broken) -> None:
    job = await broken.queue.add(1)
    await broken.client.set(f"{broken.base}jobs:lock:{job.id}", "w1")


async def _leader_stays(broken: Broken) -> None:
    await broken.client.set(f"{broken.base}scheduler:lock", "w1")


async def _side_is_newer(broken: Broken) -> None:
    await broken.client.set(f"{broken.base}x:version", 99)


async def _side_is_text(broken: Broken) -> None:
    await broken.client.set(f"{broken.base}x:version", "new")


@pytest.mark.parametrize(
    "how",
    [
        Break("orphans", _data_vanishes, Severity.WARNING, "1 of the 1 entries", "eviction policy"),
        Break("locks", _lock_stays, Severity.WARNING, "jobs:lock:", "--fix", fixable=True),
        Break("locks", _leader_stays, Severity.WARNING, "scheduler:lock", "--fix", fixable=True, name="leader's lock"),
        Break("side-data-newer", _side_is_newer, Severity.CRITICAL, "version 99", "upgrade jobwire"),
        Break("side-data-version", _side_is_text, Severity.CRITICAL, "which is not a version", "restore"),
    ],
    ids=str,
)
async def test_broken_data_is_found(bridgemq_url: str, broken: Broken, how: Break) -> None:
    await how.prove(bridgemq_url, broken)


async def test_a_job_that_no_live_worker_may_run_is_found(bridgemq_url: str, broken: Broken) -> None:
    async def handle(job: object) -> None: ...

    async with Worker("emails", handle, broken.queue.connection):
        await eventually(broken.queue.admin.workers)
        assert await finding(bridgemq_url, "unroutable") is None
        job = await broken.queue.add(1, target=Target(stack=("cobol",)))
        found = await finding(bridgemq_url, "unroutable")
    assert found is not None
    assert (found.severity, found.queue) == (Severity.WARNING, "emails")
    assert found.evidence == f"1 job: {job.id}"
    assert f"jobwire remove emails {job.id}" in found.remedy


async def test_older_side_data_is_a_note_and_is_brought_up_to_date(
    bridgemq_url: str, broken: Broken, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def step(namespace: object) -> None: ...

    async def is_older(broken: Broken) -> None:
        monkeypatch.setattr(side_version, "STEPS", [step])

    how = Break(
        "side-data-older", is_older, Severity.NOTE, "of version 1; this jobwire makes version 2", "--fix", fixable=True
    )
    await how.prove(bridgemq_url, broken)
    assert await broken.client.get(f"{broken.base}x:version") == "2"
