"""Each way in which the data of BullMQ's queues goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import redis.asyncio as redis

from jobwire import Queue, Unique, connect
from jobwire.doctor import Severity, fix
from jobwire.embedded import Server

from .conftest import Break, finding, look


@dataclass(frozen=True)
class Broken:
    """A queue, and the driver's connection to its server."""

    queue: Queue
    client: redis.Redis
    base: str


@pytest.fixture
async def broken(bullmq_url: str, unique: str, client: redis.Redis) -> AsyncIterator[Broken]:
    async with Queue("emails", bullmq_url) as queue:
        yield Broken(queue, client, f"{unique}:emails:")


async def _job_vanishes(broken: Broken) -> None:
    job = await broken.queue.add(1)
    await broken.client.delete(broken.base + job.id)


async def _events_pile_up(broken: Broken) -> None:
    for _ in range(5):
        await broken.queue.add(1)


async def _lock_stays(broken: Broken) -> None:
    job = await broken.queue.add(1)
    await broken.client.set(f"{broken.base}{job.id}:lock", "token")


async def _lock_outlives_its_job(broken: Broken) -> None:
    await broken.client.set(f"{broken.base}404:lock", "token")


async def _unique_key_outlives_its_job(broken: Broken) -> None:
    job = await broken.queue.add(1, unique=Unique("order-17"))
    assert await broken.client.get(f"{broken.base}de:order-17") == job.id
    await broken.client.delete(broken.base + job.id)


async def _node_is_old(broken: Broken) -> None:
    await broken.client.hset(f"{broken.base}meta", "version", "bullmq:4.18.2")


async def _node_is_mixed(broken: Broken) -> None:
    await broken.client.hset(f"{broken.base}meta", "version", "bullmq:5.62.0")
    await broken.client.hset(f"{broken.base.replace('emails', 'reports')}meta", "version", "bullmq:6.7.1")


@pytest.mark.parametrize(
    "how",
    [
        Break("orphans", _job_vanishes, Severity.WARNING, "1 of the 1 entries", "eviction policy"),
        Break(
            "events-growth", _events_pile_up, Severity.WARNING, "events; opts.maxLenEvents is 10000", "--trim 10000",
            limits={"events": 5},
        ),
        Break("locks", _lock_stays, Severity.WARNING, "1 key: ", "--fix", fixable=True),
        Break(
            "locks", _lock_outlives_its_job, Severity.WARNING, "404:lock (job 404 is gone", "--fix", fixable=True,
            name="lock of a job that is gone",
        ),
        Break(
            "locks", _unique_key_outlives_its_job, Severity.WARNING, "de:order-17 (job 1 is gone", "--fix",
            fixable=True, name="unique key of a job that is gone",
        ),
        Break("untested-peer", _node_is_old, Severity.WARNING, "last opened by BullMQ 4.18.2", "jobwire that lists"),
        Break("mixed-versions", _node_is_mixed, Severity.WARNING, "5.62.0 on emails, 6.7.1 on reports", "one version"),
    ],
    ids=str,
)  # fmt: skip
async def test_broken_data_is_found(bullmq_url: str, broken: Broken, how: Break) -> None:
    await how.prove(bullmq_url, broken)


async def test_a_fix_spares_locks_and_keys_that_are_owned(bullmq_url: str, broken: Broken) -> None:
    held = await broken.queue.add(1, unique=Unique("held"))
    claim = await broken.queue.claim(lease=3600)
    assert claim is not None
    await broken.client.persist(f"{broken.base}{held.id}:lock")  # of a job that runs
    await broken.client.set(f"{broken.base}404:lock", "token")
    found = await finding(bullmq_url, "locks")
    assert found is not None
    assert "1 key: " in found.evidence
    await fix(connect(bullmq_url), [found])
    assert await broken.client.get(f"{broken.base}de:held") == held.id
    assert await broken.client.exists(f"{broken.base}{held.id}:lock") == 1
    assert await broken.client.exists(f"{broken.base}404:lock") == 0
    await claim.complete()


async def test_a_fix_that_the_account_may_not_make_is_reported(
    bullmq_url: str, unique: str, valkey: Server, broken: Broken
) -> None:
    await broken.client.set(f"{broken.base}404:lock", "token")
    found = await finding(bullmq_url, "locks")
    assert found is not None
    await broken.client.execute_command("ACL", "SETUSER", unique, "on", ">x", "~*", "&*", "+@all", "-eval", "-evalsha")
    try:
        host = valkey.url.rpartition("@")[2]
        [fixed] = await fix(connect(f"bullmq+redis://{unique}:x@{host}?prefix={unique}"), [found])
    finally:
        await broken.client.execute_command("ACL", "DELUSER", unique)
    assert not fixed.done
    assert "no permissions" in fixed.detail
    assert await finding(bullmq_url, "locks") is not None


async def test_a_key_of_another_type_is_a_note_and_hides_no_trouble_of_other_queues(
    bullmq_url: str, unique: str, broken: Broken
) -> None:
    await _job_vanishes(broken)
    await broken.client.hset(f"{unique}:strange:meta", "opts.maxLenEvents", "10")
    await broken.client.set(f"{unique}:strange:wait", "not a list")
    findings = (await look(bullmq_url)).findings
    notes = [one for one in findings if one.code == "not-examined"]
    assert {one.queue for one in notes} == {"strange"}, findings
    assert all("WRONGTYPE" in one.evidence for one in notes)
    assert [one.queue for one in findings if one.code == "orphans"] == ["emails"]


@pytest.mark.slow
async def test_a_cluster_is_looked_at_node_by_node(jobwire_valkey_cluster: object, unique: str) -> None:
    urls = jobwire_valkey_cluster.urls  # type: ignore[attr-defined]
    host = urls[0].rpartition("@")[2].partition("/")[0]
    password = urls[0].partition("://")[2].rpartition("@")[0]
    url = f"bullmq+cluster://{password}@{host}?prefix={{{unique}}}"
    async with Queue("emails", url) as queue:
        await queue.add(1)
        seen = await look(url)
    assert "(3 nodes)" in seen.server
    codes = [one.code for one in seen.findings]
    assert codes == ["no-persistence"] * 3 + ["no-worker"]
