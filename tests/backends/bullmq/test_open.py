"""Reaching a store: what is checked before a queue is touched, on one server and on a cluster."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from awaiting import eventually
from jobwire.boundary import Backend, Completed, Feature
from jobwire.connection import load_backend
from jobwire.embedded import Cluster, Server, binaries
from jobwire.errors import InvalidOption, NotSupported, StoreRefused, StoreUnavailable
from jobwire.options import NewJob, Parent
from jobwire.urls import parse

from .jobs import add, claim, consumer
from .peer import node


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    backend = load_backend(parse("bullmq+redis://:hunter2@127.0.0.1:1/0"))
    with pytest.raises(StoreUnavailable) as told:
        await backend.open()
    assert "127.0.0.1:1" in str(told.value)
    assert "hunter2" not in str(told.value)
    await backend.close()


async def test_a_wrong_password_is_refused(jobwire_valkey: Server, redis: Redis, prefix: str) -> None:
    await redis.acl_setuser(prefix, enabled=True, passwords=["+right"], keys=["*"], commands=["+@all"])
    backend = load_backend(
        parse(f"bullmq+{jobwire_valkey.url.replace(f':{urlsplit(jobwire_valkey.url).password}@', f'{prefix}:wrong@')}")
    )
    with pytest.raises(StoreRefused):
        await backend.open()
    await backend.close()
    await redis.acl_deluser(prefix)


async def test_a_backend_that_is_not_open_says_so(jobwire_valkey: Server) -> None:
    backend = load_backend(parse(f"bullmq+{jobwire_valkey.url}"))
    with pytest.raises(StoreUnavailable, match="not open"):
        await backend.counts("q")


async def test_a_closed_backend_can_be_opened_again(backend: Backend) -> None:
    await backend.close()
    await backend.open()
    assert [answer.id for answer in await add(backend, NewJob(1))] == ["1"]


async def test_a_twin_shares_the_store_and_no_connection(backend: Backend) -> None:
    twin = backend.twin()
    await twin.open()
    await add(twin, NewJob("from the twin"))
    [one] = await claim(consumer(backend))
    await twin.close()
    assert one.job.data == "from the twin"


async def test_an_embedded_server_is_started_and_stopped(tmp_path: Path) -> None:
    backend = load_backend(parse(f"bullmq+embedded://{tmp_path}"))
    await backend.open()
    try:
        await add(backend, NewJob(1))
        assert len(await claim(consumer(backend))) == 1
    finally:
        await backend.close()


def test_cancelling_a_job_is_not_supported_and_says_what_is(backend: Backend) -> None:
    with pytest.raises(NotSupported, match="remove"):
        backend.capabilities.require(Feature.CANCEL)


async def test_a_cluster_serves_queues_with_a_tag(jobwire_valkey_cluster: Cluster, unique: str) -> None:
    hosts = jobwire_valkey_cluster.hosts
    backend = load_backend(parse(f"bullmq+cluster://{hosts}/?prefix={{{unique}}}"))
    await backend.open()
    worker = consumer(backend)
    try:
        await backend.register("q")
        await add(backend, NewJob(1), NewJob(2, delay=60), NewJob(3, priority=1))
        claims = await claim(worker, 5)
        settled = await worker.settle([Completed(one, b"1") for one in claims], 5)
        assert len(settled.verdicts) == 2
        await worker.wait(0.05)
        await worker.reset()
        assert [job and job.result for job in await backend.get("q", ["1", "3"])] == [1, 1]
    finally:
        await worker.close()
        await backend.close()


async def test_a_cluster_refuses_queues_without_a_tag(jobwire_valkey_cluster: Cluster) -> None:
    hosts = jobwire_valkey_cluster.hosts
    backend = load_backend(parse(f"bullmq+cluster://{hosts}/"))
    with pytest.raises(InvalidOption, match="braces"):
        backend.check("q", NewJob(1))
    backend.check("{q}", NewJob(1, parent=Parent("R", "r{q}")))
    with pytest.raises(InvalidOption, match="same part"):
        backend.check("{q}", NewJob(1, parent=Parent("R", "{r}")))


async def test_a_cluster_reached_as_one_server_is_refused(jobwire_valkey_cluster: Cluster) -> None:
    backend = load_backend(parse(f"bullmq+{jobwire_valkey_cluster.urls[0]}"))
    with pytest.raises(StoreRefused, match=r"bullmq\+cluster"):
        await backend.open()
    await backend.close()


@pytest.fixture
async def sentinel(jobwire_valkey: Server, tmp_path: Path) -> AsyncIterator[int]:
    """The port of a sentinel that watches the run's Valkey under the name `main`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    watched = urlsplit(jobwire_valkey.url)
    config = tmp_path / "sentinel.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {tmp_path}\nsentinel monitor main {watched.hostname} {watched.port} 1\n"
        f"sentinel auth-pass main {watched.password}\n"
    )
    process = subprocess.Popen([binaries.VALKEY.find(), str(config), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        async with Redis(port=port) as client:
            await eventually(lambda: _knows_main(client))
        yield port
    finally:
        process.terminate()
        process.wait()


async def _knows_main(client: Redis) -> bool:
    try:
        return bool(await client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"))
    except RedisError:
        return False


async def test_sentinels_are_asked_for_the_server(jobwire_valkey: Server, sentinel: int, prefix: str) -> None:
    login = f":{urlsplit(jobwire_valkey.url).password}@"
    backend = load_backend(parse(f"bullmq+sentinel://{login}127.0.0.1:{sentinel}/main/0?prefix={prefix}"))
    await backend.open()
    worker = consumer(backend)
    await add(backend, NewJob(1))
    await worker.wait(1.0)
    assert len(await claim(worker)) == 1
    await worker.close()
    await backend.close()


async def test_a_service_that_sentinels_do_not_know_is_unavailable(sentinel: int) -> None:
    backend = load_backend(parse(f"bullmq+sentinel://127.0.0.1:{sentinel}/other/0"))
    with pytest.raises(StoreUnavailable):
        await backend.open()
    await backend.close()


@pytest.mark.parametrize("peer", ["bullmq", "bullmq-6"])
async def test_node_works_on_a_queue_that_we_registered(
    peer: str, backend: Backend, jobwire_valkey: Server, prefix: str
) -> None:
    await backend.register("q")
    await add(backend, NewJob({"n": 20}, attempts=2))
    script = "await work(prefixes[0], 1, async (job) => job.data.n + 1); say(await queueOf(prefixes[0]).getVersion());"
    [version] = await node(jobwire_valkey.url, [prefix], script, peer=peer)
    [job] = await backend.get("q", ["1"])
    assert job is not None
    assert (job.result, job.attempts) == (21, 2)
    assert version.startswith(("jobwire:", "bullmq:"))
