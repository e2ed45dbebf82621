"""Each way in which a Redis or Valkey server is set up to lose or delay jobs, for both protocols on it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as redis

from awaiting import eventually
from jobwire import connect, embedded
from jobwire.backends.redisio import diagnose
from jobwire.doctor import Severity, examine
from jobwire.embedded import Server

from .conftest import Break, finding, look


async def _evicts(client: redis.Redis) -> None:
    await client.config_set("maxmemory-policy", "allkeys-lru")


async def _evicts_now(client: redis.Redis) -> None:
    await client.config_set("maxmemory", "1gb")
    await client.config_set("maxmemory-policy", "volatile-ttl")


async def _is_nearly_full(client: redis.Redis) -> None:
    used = (await client.info("memory"))["used_memory"]
    await client.config_set("maxmemory", int(used * 1.05))


async def _has_no_persistence(client: redis.Redis) -> None:
    await client.config_set("appendonly", "no")
    await client.config_set("save", "")


async def _has_snapshots_only(client: redis.Redis) -> None:
    await client.config_set("save", "3600 1")
    await client.config_set("appendonly", "no")


async def _never_syncs(client: redis.Redis) -> None:
    await client.config_set("appendfsync", "no")


async def _has_few_connections(client: redis.Redis) -> None:
    used = (await client.info("clients"))["connected_clients"]
    await client.config_set("maxclients", used + 40)


@pytest.mark.parametrize("protocol", ["bullmq", "bridgemq"])
@pytest.mark.parametrize(
    "broken",
    [
        Break("eviction", _evicts, Severity.WARNING, "is allkeys-lru; maxmemory is not set", "noeviction"),
        Break(
            "eviction", _evicts_now, Severity.CRITICAL, "is volatile-ttl; maxmemory is 1.00 GiB", "noeviction",
            name="eviction with a limit",
        ),
        Break("memory", _is_nearly_full, Severity.WARNING, "GiB are in use (9", "jobwire clean"),
        Break("no-persistence", _has_no_persistence, Severity.CRITICAL, "there is no replica", "appendonly yes"),
        Break("weak-persistence", _has_snapshots_only, Severity.WARNING, "save is '3600 1'", "appendonly yes"),
        Break(
            "weak-persistence", _never_syncs, Severity.WARNING, "appendfsync is no", "appendfsync everysec",
            name="appendfsync no",
        ),
    ],
    ids=str,
)  # fmt: skip
async def test_a_broken_setting_is_found(
    request: pytest.FixtureRequest, client: redis.Redis, protocol: str, broken: Break
) -> None:
    await broken.prove(request.getfixturevalue(f"{protocol}_url"), client)


async def test_a_flood_of_connections_is_found(bullmq_url: str, valkey: Server, client: redis.Redis) -> None:
    await _has_few_connections(client)
    assert await finding(bullmq_url, "connections") is None
    async with AsyncExitStack() as idle:
        for _ in range(38):
            one = await idle.enter_async_context(redis.Redis.from_url(valkey.url, single_connection_client=True))
            await one.ping()
        found = await finding(bullmq_url, "connections")
    assert found is not None
    assert found.severity is Severity.WARNING
    assert " connections are in use" in found.evidence
    assert "maxclients" in found.remedy


async def test_a_disk_that_can_not_be_written_is_found(bullmq_url: str, client: redis.Redis) -> None:
    assert await finding(bullmq_url, "persistence-fails") is None
    settings = await client.config_get("dir", "dbfilename")
    in_the_way = Path(settings["dir"]) / settings["dbfilename"]
    in_the_way.unlink(missing_ok=True)
    in_the_way.mkdir()  # a folder can't be replaced by a file
    try:
        await client.bgsave()

        async def failed() -> bool:
            return (await client.info("persistence"))["rdb_last_bgsave_status"] == "err"

        await eventually(failed)
        found = await finding(bullmq_url, "persistence-fails")
    finally:
        in_the_way.rmdir()
        await client.bgsave()

        async def saved() -> bool:
            return (await client.info("persistence"))["rdb_last_bgsave_status"] == "ok"

        await eventually(saved)
    assert found is not None
    assert found.severity is Severity.CRITICAL
    assert "rdb_last_bgsave_status is err" in found.evidence


@pytest.fixture
async def replica(
    valkey: Server, client: redis.Redis, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Server, redis.Redis]]:
    """Another server that follows the one of these tests."""
    with await asyncio.to_thread(embedded.valkey, tmp_path_factory.mktemp("replica"), durable=False) as server:
        async with redis.Redis.from_url(server.url, decode_responses=True) as follower:
            about = client.connection_pool.connection_kwargs
            await client.config_set("repl-diskless-sync-delay", 600)
            await follower.config_set("masterauth", about["password"])
            await follower.execute_command("REPLICAOF", about["host"], about["port"])
            yield server, follower


@pytest.mark.slow
async def test_replicas_are_looked_at_from_both_sides(
    bullmq_url: str, unique: str, client: redis.Redis, replica: tuple[Server, redis.Redis]
) -> None:
    server, follower = replica

    async def state() -> str:
        return str((await client.info("replication")).get("slave0", {}).get("state", ""))

    assert await eventually(state) == "wait_bgsave"
    found = await finding(bullmq_url, "member-down")
    assert found is not None
    assert found.evidence.endswith(" is in state wait_bgsave")
    await client.config_set("repl-diskless-sync-delay", 0)

    async def online() -> bool:
        return await state() == "online"

    await eventually(online)
    assert [one.code for one in (await look(bullmq_url)).findings] == ["store-empty"]
    process: Any = (await follower.info("server"))["process_id"]
    os.kill(process, signal.SIGSTOP)
    try:

        async def behind() -> bool:
            return (await client.info("replication"))["slave0"]["lag"] >= 1

        await eventually(behind)
        found = await finding(bullmq_url, "replica-lag", replica_lag=1)
    finally:
        os.kill(process, signal.SIGCONT)
    assert found is not None
    assert "last answered" in found.evidence
    for protocol in ("bullmq", "bridgemq"):
        seen = await examine(connect(f"{protocol}+{server.url}"))
        found = next(one for one in seen.findings if one.code == "replica")
        assert found.severity is Severity.CRITICAL
        assert "its primary is 127.0.0.1:" in found.evidence


@pytest.mark.parametrize("protocol", ["bullmq", "bridgemq"])
async def test_what_the_account_may_not_see_is_a_note(valkey: Server, client: redis.Redis, protocol: str) -> None:
    name = f"poor-{protocol}"
    await client.execute_command("ACL", "SETUSER", name, "on", ">x", "~*", "&*", "+@all", "-config", "-info", "-time")
    try:
        host = valkey.url.rpartition("@")[2]
        seen = await look(f"{protocol}+redis://{name}:x@{host}")
    finally:
        await client.execute_command("ACL", "DELUSER", name)
    assert {one.code for one in seen.findings} == {"not-examined"}
    assert seen.healthy
    evidence = "\n".join(one.evidence for one in seen.findings)
    for what in ("clock: ", "memory: ", "persistence: ", "replication: ", "connections: "):
        assert what in evidence
    assert "no permissions" in evidence


async def test_a_server_that_answers_in_another_form_is_a_note(
    bullmq_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some hosted servers leave settings out of their answers."""

    async def nothing(store: object, *command: str) -> list[tuple[str, dict[str, str]]]:
        return [("", {})]

    monkeypatch.setattr(diagnose, "on_each_node", nothing)
    seen = await look(bullmq_url)
    notes = [one.evidence for one in seen.findings if one.code == "not-examined"]
    assert notes == ["connections: the server's answer can't be read (KeyError: 'maxclients')"]
