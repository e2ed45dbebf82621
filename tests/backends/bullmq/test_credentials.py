"""Credentials that stop holding: a refusal, which a worker survives until they hold again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from awaiting import eventually
from credentials import is_refused
from jobwire import Queue, State, StoreRefused, StoreUnavailable, Worker, connect
from jobwire.embedded import Cluster, Server


async def _admit(redis: Redis, user: str, password: str) -> None:
    await redis.acl_setuser(
        user, enabled=True, reset_passwords=True, passwords=[f"+{password}"], keys=["*"], channels=["*"],
        commands=["+@all"],
    )  # fmt: skip


@pytest.mark.parametrize("protocol", ["bullmq", "bridgemq"])
async def test_a_changed_password_is_a_refusal_and_a_worker_goes_on_when_it_holds_again(
    protocol: str, jobwire_valkey: Server, redis: Redis, unique: str
) -> None:
    await _admit(redis, unique, "first")
    port = urlsplit(jobwire_valkey.url).port
    option = {"bullmq": "prefix", "bridgemq": "namespace"}[protocol]
    place = f"127.0.0.1:{port}/0?{option}={unique}"
    async with (
        Queue("mail", f"{protocol}+redis://:{urlsplit(jobwire_valkey.url).password}@{place}") as queue,
        Queue("mail", f"{protocol}+redis://{unique}:first@{place}") as revoked,
        Worker("mail", _double, f"{protocol}+redis://{unique}:first@{place}") as worker,
    ):
        assert await (await queue.add(1)).wait(timeout=20) == 2
        await _admit(redis, unique, "second")
        await redis.execute_command("CLIENT", "KILL", "USER", unique)
        await eventually(lambda: is_refused(revoked))
        await eventually(lambda: not worker.connected)
        job = await queue.add(2)
        await _admit(redis, unique, "first")
        assert await job.wait(timeout=60) == 4
        assert (await queue.counts())[State.COMPLETED] == 2
    await redis.acl_deluser(unique)


def _double(job: Any) -> Any:
    return job.data * 2


@pytest.mark.parametrize("protocol", ["bullmq", "bridgemq"])
async def test_a_cluster_refuses_a_wrong_password_and_is_unavailable_when_it_is_away(
    protocol: str, jobwire_valkey: Server, jobwire_valkey_cluster: Cluster, unique: str
) -> None:
    option = {"bullmq": "prefix", "bridgemq": "namespace"}[protocol]
    nodes = jobwire_valkey_cluster.hosts.partition("@")[2]
    alone = jobwire_valkey.url.removeprefix("redis://").partition("/")[0]
    for hosts, error in (
        (f":wrong@{nodes}", StoreRefused),
        (nodes, StoreRefused),
        (alone, StoreRefused),  # not a cluster
        ("127.0.0.1:1", StoreUnavailable),
    ):
        connection = connect(f"{protocol}+cluster://{hosts}/?{option}={{{unique}}}")
        with pytest.raises(error):
            await connection.open()
        await connection.close()
