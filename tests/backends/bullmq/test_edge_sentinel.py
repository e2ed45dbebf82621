"""Sentinels: the server dies under load, its replica takes over, and queue and worker go on by themselves."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from awaiting import eventually
from jobwire import NewJob, Queue, State, StoreUnavailable, Worker
from jobwire.embedded import binaries
from jobwire.worker.active import ActiveJob

from .own_servers import free_ports, running
from .tls_front import TLS, tls_front

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SENTINELS = 3
BEFORE, AFTER = 300, 100


@dataclass
class Watched:
    """A server with a replica, and the sentinels that watch them under the name `main`."""

    ports: tuple[int, int]
    sentinels: list[int]
    processes: dict[int, subprocess.Popen[bytes]]

    def kill(self, port: int) -> None:
        self.processes[port].kill()
        self.processes[port].wait()

    async def main(self) -> int:
        """The port of the server that the first sentinel takes for the right one."""
        async with Redis(port=self.sentinels[0], decode_responses=True) as sentinel:
            with suppress(RedisError):
                answer = await sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
                return int(answer[1])
        return 0


@pytest.fixture
async def watched(tmp_path: Path) -> AsyncIterator[Watched]:
    program = str(binaries.VALKEY.find())
    first, second, *sentinels = free_ports(2 + SENTINELS)
    processes: dict[int, subprocess.Popen[bytes]] = {}
    with ExitStack() as started:
        for port, more in ((first, []), (second, ["--replicaof", "127.0.0.1", str(first)])):
            (folder := tmp_path / str(port)).mkdir()
            common = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", ""]
            fast = ["--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"]
            processes[port] = started.enter_context(running([program, *common, *fast, *more]))
        async with Redis(port=second, decode_responses=True) as replica:
            await eventually(lambda: _in_step(replica))
        for port in sentinels:
            (folder := tmp_path / str(port)).mkdir()
            config = folder / "sentinel.conf"
            config.write_text(
                f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor main 127.0.0.1 {first} 2\n"
                "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 4000\n"
            )
            started.enter_context(running([program, str(config), "--sentinel"]))
        for port in sentinels:
            async with Redis(port=port, decode_responses=True) as sentinel:
                await eventually(lambda one=sentinel: _knows_all(one), within=30)
        yield Watched((first, second), sentinels, processes)


async def _in_step(replica: Redis) -> bool:
    with suppress(RedisError):
        return (await replica.info("replication"))["master_link_status"] == "up"
    return False


async def _knows_all(sentinel: Redis) -> bool:
    with suppress(RedisError):
        told = await sentinel.info("sentinel")
        return (told["master0"]["slaves"], told["master0"]["sentinels"]) == (1, SENTINELS)
    return False


async def test_a_failover_under_load_loses_nothing_that_was_replicated(watched: Watched) -> None:
    runs: dict[int, int] = {}
    half_done = asyncio.Event()

    async def handle(job: ActiveJob) -> int:
        runs[job.data] = runs.get(job.data, 0) + 1
        if len(runs) >= BEFORE // 2:
            half_done.set()
        await asyncio.sleep(0.005)
        return job.data

    hosts = ",".join(f"127.0.0.1:{port}" for port in watched.sentinels)
    url = f"bullmq+sentinel://{hosts}/main/0"
    first, second = watched.ports
    async with Queue("work", url) as queue:
        await queue.add_many([NewJob(number) for number in range(BEFORE)])
        async with Redis(port=first) as server:
            assert await server.execute_command("WAIT", 1, 5000) == 1
        worker = Worker("work", handle, url, concurrency=4, lease=2.0, recover_every=0.5)
        working = asyncio.create_task(worker.run(signals=False))
        try:
            await half_done.wait()
            watched.kill(first)
            await eventually(lambda: _moved(watched, second), within=40)
            for number in range(BEFORE, BEFORE + AFTER):
                await eventually(lambda n=number: _added(queue, n), within=30)
            await eventually(lambda: _all_done(queue), within=40)
        finally:
            await worker.stop()
            await working
    assert runs.keys() == set(range(BEFORE + AFTER))
    async with Redis(port=second) as server:
        assert await server.zcard("bull:work:completed") == BEFORE + AFTER


async def _moved(watched: Watched, port: int) -> bool:
    return await watched.main() == port


async def _added(queue: Queue, number: int) -> bool:
    """Sent again until it is acknowledged; the id makes that one job."""
    try:
        await queue.add(number, id=f"after-{number}")
    except StoreUnavailable:
        return False
    return True


async def _all_done(queue: Queue) -> bool:
    with suppress(StoreUnavailable):
        counts = await queue.counts()
        return counts[State.COMPLETED] == BEFORE + AFTER
    return False


@pytest.mark.parametrize(
    "who", ["sentinel_password=sentinel-pw", "sentinel_username=watcher&sentinel_password=watcher-pw"]
)
async def test_sentinels_have_credentials_of_their_own(guarded: int, who: str) -> None:
    url = f"bullmq+sentinel://:server-pw@127.0.0.1:{guarded}/main/0?{who}"
    async with Queue("work", url) as queue, Worker("work", _echo, url):
        assert await (await queue.add(7)).wait(20) == 7
    assert "-pw" not in repr(queue)


async def test_sentinels_are_reached_by_tls_of_their_own(guarded: int) -> None:
    async with tls_front(guarded) as port:
        options = f"sentinel_password=sentinel-pw&sentinel_tls=true&ssl_ca_certs={TLS / 'certificate.pem'}"
        url = f"bullmq+sentinel://:server-pw@127.0.0.1:{port}/main/0?{options}"
        async with Queue("work", url) as queue, Worker("work", _echo, url):
            assert await (await queue.add(7)).wait(20) == 7


async def _echo(job: ActiveJob) -> int:
    return job.data
