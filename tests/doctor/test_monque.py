"""Each way in which a MongoDB server or a Monque collection is set up or left to lose or delay jobs."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from pymongo import MongoClient
from pymongo.collection import Collection

from awaiting import eventually
from jobwire import Queue, connect
from jobwire.doctor import Severity, fix
from jobwire.embedded import binaries

from .conftest import Break, finding, look

Jobs = Collection[dict[str, Any]]


@pytest.fixture
async def stored(monque_url: str, jobs: Jobs) -> AsyncIterator[Jobs]:
    """The collection with a waiting job, as jobwire made it."""
    async with Queue("emails", monque_url) as queue:
        await queue.add(1)
        await queue.admin.pause()
        yield jobs


async def _index_is_dropped(jobs: Jobs) -> None:
    jobs.drop_index("name_1_uniqueKey_1")


async def _side_index_is_dropped(jobs: Jobs) -> None:
    jobs.database["monque_jobs_jobwire"].drop_index("name_1")


async def _index_is_added(jobs: Jobs) -> None:
    jobs.create_index("tenant")


async def _jobs_expire(jobs: Jobs) -> None:
    jobs.create_index("createdAt", expireAfterSeconds=86_400, name="cleanup")


async def _is_capped(jobs: Jobs) -> None:
    jobs.database.command("convertToCapped", jobs.name, size=1_000_000)


async def _lock_stays(jobs: Jobs) -> None:
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    jobs.update_one({}, {"$set": {"status": "processing", "updatedAt": long_ago, "lockedAt": None}})


async def _status_is_unknown(jobs: Jobs) -> None:
    jobs.update_one({}, {"$set": {"status": "archived"}})


async def _side_is_newer(jobs: Jobs) -> None:
    jobs.database["monque_jobs_jobwire"].update_one({"_id": "jobwire:version"}, {"$set": {"version": 99}})


@pytest.mark.parametrize(
    "how",
    [
        Break("index-missing", _index_is_dropped, Severity.CRITICAL, "no name_1_uniqueKey_1", "--fix", fixable=True),
        Break(
            "index-missing", _side_index_is_dropped, Severity.CRITICAL, "monque_jobs_jobwire has no name_1", "--fix",
            fixable=True, name="index of side data",
        ),
        Break("index-extra", _index_is_added, Severity.NOTE, "also has tenant_1", "dropIndex('tenant_1')"),
        Break("deleting-index", _jobs_expire, Severity.CRITICAL, "expireAfterSeconds 86,400", "dropIndex('cleanup')"),
        Break("capped", _is_capped, Severity.CRITICAL, "capped at 1,000", "without a limit"),
        Break("locks", _lock_stays, Severity.WARNING, "processing without claimedBy: 1 job (", "--fix", fixable=True),
        Break("unknown-status", _status_is_unknown, Severity.WARNING, "is 'archived'", "must be pending"),
        Break("side-data-newer", _side_is_newer, Severity.CRITICAL, "version 99", "upgrade jobwire"),
    ],
    ids=str,
)  # fmt: skip
async def test_what_is_broken_is_found(monque_url: str, stored: Jobs, how: Break) -> None:
    await how.prove(monque_url, stored)


async def test_a_job_without_an_owner_is_ready_after_the_fix_and_others_stay(monque_url: str, stored: Jobs) -> None:
    owned = {"name": "emails", "status": "processing", "claimedBy": "node-1", "updatedAt": datetime(2020, 1, 1)}  # noqa: DTZ001 - as the driver stores it
    fresh = {"name": "emails", "status": "processing", "updatedAt": datetime.now(UTC)}
    await _lock_stays(stored)
    stored.insert_many([owned, fresh])
    found = await finding(monque_url, "locks")
    assert found is not None
    [fixed] = await fix(connect(monque_url), [found])
    assert fixed.detail == "released 1 job"
    assert [one["status"] for one in stored.find(sort=[("_id", 1)])] == ["pending", "processing", "processing"]


async def test_a_flood_of_connections_is_found(monque_url: str, stored: Jobs) -> None:
    about = stored.database.client.admin.command("serverStatus")["connections"]
    share = (about["current"] + 20) / (about["current"] + about["available"])
    assert await finding(monque_url, "connections", connections=share) is None
    idle = [socket.create_connection(stored.database.client.address) for _ in range(30)]  # type: ignore[arg-type]
    try:

        async def found() -> Any:
            return await finding(monque_url, "connections", connections=share)

        one = await eventually(found)
    finally:
        for connection in idle:
            connection.close()
    assert "maxIncomingConnections" in one.remedy


@pytest.mark.parametrize(
    ("option", "code", "words"),
    [("w=1", "write-concern", "w=1"), ("socketTimeoutMS=2000", "url-timeout", "sockettimeoutms=2000")],
)
async def test_options_of_the_url_are_looked_at(
    monque_url: str, stored: Jobs, option: str, code: str, words: str
) -> None:
    assert await finding(monque_url, code) is None
    found = await finding(f"{monque_url}&{option}", code)
    assert found is not None
    assert found.severity is Severity.WARNING
    assert words in found.evidence


def _start(folder: Path, *options: str) -> tuple[subprocess.Popen[bytes], int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(binaries.MONGO.find()), "--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen([*command, "--dbpath", str(folder), *options], stdout=log), port


@pytest.fixture
def lone_server(tmp_path: Path) -> Iterator[int]:
    server, port = _start(tmp_path)
    try:
        with MongoClient(port=port) as client:
            client.admin.command("ping")
        yield port
    finally:
        server.terminate()
        server.wait()


@pytest.mark.slow
async def test_a_server_without_a_replica_set_is_found(lone_server: int) -> None:
    url = f"monque+mongodb://127.0.0.1:{lone_server}/shop"
    async with Queue("emails", url) as queue:
        await queue.add(1)
    seen = await look(url)
    assert [(one.code, one.severity) for one in seen.findings] == [("standalone", Severity.WARNING)]
    assert "--replSet" in seen.findings[0].remedy
    assert seen.server.endswith(", standalone")


@pytest.fixture
def replica_set(tmp_path: Path) -> Iterator[tuple[str, MongoClient[Any], MongoClient[Any]]]:
    """A replica set of three: a primary, a secondary, and one that is not running. Yields the URL and clients of the
    primary and the secondary."""
    options = ("--replSet", "rs0", "--oplogSize", "16", "--wiredTigerCacheSizeGB", "0.25")
    with ExitStack() as running:
        ports: list[int] = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            server, port = _start(tmp_path / name, *options)
            running.callback(server.wait)
            running.callback(server.kill)
            ports.append(port)
        clients = [running.enter_context(MongoClient(port=port, directConnection=True)) for port in ports]
        quiet = {"priority": 0, "votes": 0}
        members = [
            {"_id": 0, "host": f"127.0.0.1:{ports[0]}"},
            {"_id": 1, "host": f"127.0.0.1:{ports[1]}", **quiet},
            {"_id": 2, "host": "127.0.0.1:1", **quiet},
        ]
        quick = {"electionTimeoutMillis": 500, "heartbeatIntervalMillis": 200}
        clients[0].admin.command("replSetInitiate", {"_id": "rs0", "members": members[:2], "settings": quick})
        primary, secondary = clients
        deadline = time.monotonic() + 60
        while not (
            primary.admin.command("hello")["isWritablePrimary"] and secondary.admin.command("hello").get("secondary")
        ):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        config = primary.admin.command("replSetGetConfig")["config"]
        config |= {"version": config["version"] + 1, "members": [*config["members"], members[2]]}
        primary.admin.command("replSetReconfig", config)
        yield f"monque+mongodb://127.0.0.1:{ports[0]}/shop?directConnection=true", primary, secondary


@pytest.mark.slow
async def test_members_and_the_oplog_of_a_replica_set_are_looked_at(
    replica_set: tuple[str, MongoClient[Any], MongoClient[Any]],
) -> None:
    url, primary, secondary = replica_set

    async def found(code: str) -> Any:
        return await finding(url, code, replica_lag=5)

    one = await eventually(lambda: found("member-down"), within=60)
    assert (one.severity, one.evidence) == (Severity.WARNING, "member 127.0.0.1:1 is down")
    assert await finding(url, "short-oplog") is None
    # A locked secondary applies nothing and still answers heartbeats. A stopped one would soon be down. Heartbeats come
    # every two seconds, so that also a secondary without any lag may seem to be as far behind.
    secondary.admin.command("fsync", lock=True)
    try:

        async def lags() -> Any:
            primary["shop"]["other"].insert_one({"text": "x" * 500_000})
            return await found("replica-lag")

        one = await eventually(lags, within=60)
    finally:
        secondary.admin.command("fsyncUnlock")
    assert one.severity is Severity.WARNING
    assert " s behind the primary" in one.evidence

    async def is_short() -> Any:
        primary["shop"]["other"].insert_one({"text": "x" * 1_000_000})
        return await found("short-oplog")

    one = await eventually(is_short, within=60)
    assert one.severity is Severity.NOTE
    assert "replSetResizeOplog" in one.remedy


async def test_an_id_of_any_kind_is_shown(monque_url: str, stored: Jobs) -> None:
    stored.insert_one({"_id": ObjectId(), "name": "emails", "status": 7})
    found = await finding(monque_url, "unknown-status")
    assert found is not None
    assert found.evidence.endswith("is 7")


async def test_a_schedule_whose_job_runs_for_long_has_not_stopped(monque_url: str, jobs: Jobs) -> None:
    due, now = datetime.now(UTC) - timedelta(hours=2), datetime.now(UTC)
    async with Queue("emails", monque_url) as queue:
        await queue.schedule("nightly", cron="0 3 * * *")
        jobs.update_one({}, {"$set": {"nextRunAt": due}})
        assert await finding(monque_url, "schedules-stopped") is not None
        claim = {"status": "processing", "claimedBy": "node-1", "lockedAt": now, "lastHeartbeat": now, "updatedAt": now}
        jobs.update_one({}, {"$set": claim})
        assert [schedule.next_run for schedule in await queue.schedules()] == [None]
        assert (await look(monque_url)).findings == []
