"""Measures what a store itself may lose, by its settings: `PYTHONPATH=tests python -m faults.store_losses`.

Jobs are added as fast as one producer can, and the server is killed (SIGKILL) in the middle. The acknowledged jobs that
are missing after the restart, or on the replica that takes over, are counted. A kill leaves the pages that the server
has written to the operating system: a power failure would lose more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import redis

from awaiting import eventually
from faults.proxy import Proxy
from jobwire import JobwireError, NewJob, Queue, embedded
from jobwire.embedded import Server, binaries

_SECONDS = 3.0
_BATCH = 20


@dataclass(frozen=True)
class Loss:
    """What one setting came to."""

    setting: str
    acknowledged: int
    missing: int


async def add_until_killed(url: str, kill: Callable[[], None]) -> list[str]:
    """Adds jobs until the server has been killed under it. Returns the acknowledged ids."""
    acknowledged: list[str] = []
    killed = asyncio.Event()
    async with Queue("work", url) as queue:
        for act in (kill, killed.set):
            asyncio.get_running_loop().call_later(_SECONDS, act)
        with contextlib.suppress(JobwireError):
            while not killed.is_set():
                acknowledged += [job.id for job in await queue.add_many([NewJob({"n": n}) for n in range(_BATCH)])]
        await killed.wait()
    return acknowledged


async def missing(url: str, ids: list[str]) -> int:
    async with Queue("work", url) as queue:
        there = {job.id async for job in queue.iter_jobs("waiting", page_size=5000)}
    return sum(1 for one in ids if one not in there)


def _kill(server: Server) -> None:
    os.kill(server.pid, signal.SIGKILL)


async def _restarted(server: Server, before: int) -> None:
    await eventually(lambda: server.pid not in (0, before), within=120)


async def with_settings(setting: str, server: Server, url: str) -> Loss:
    """Kills a server whose settings were made before, and counts after its restart."""
    before = server.pid
    ids = await add_until_killed(url, lambda: _kill(server))
    await _restarted(server, before)
    return Loss(setting, len(ids), await missing(url, ids))


async def valkey(folder: Path, setting: str, fsync: str) -> Loss:
    with embedded.valkey(folder / f"valkey-{fsync}") as server:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("appendfsync", fsync)
        return await with_settings(setting, server, f"bullmq+{server.url}")


async def valkey_replica(folder: Path, setting: str, lag: float) -> Loss:
    """Kills a master and makes its replica the master, which has got nothing for the last `lag` seconds."""
    with embedded.valkey(folder / "valkey-master") as server:
        async with Proxy(urlsplit(server.url).port or 0) as link, replica_of(server, folder, link.port) as replica:
            if lag:
                asyncio.get_running_loop().call_later(_SECONDS - lag, link.half_open)
            ids = await add_until_killed(f"bullmq+{server.url}", lambda: _kill(server))
            with redis.Redis.from_url(replica) as client:
                client.replicaof("NO", "ONE")
            return Loss(setting, len(ids), await missing(f"bullmq+{replica}", ids))


@contextlib.asynccontextmanager
async def replica_of(server: Server, folder: Path, link: int) -> AsyncIterator[str]:
    """Runs a replica that reaches its master at the port `link`. Yields its URL when it has caught up."""
    master = urlsplit(server.url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = folder / "replica"
    home.mkdir(parents=True)
    settings = home / "replica.conf"
    settings.write_text(f"requirepass {master.password}\nmasterauth {master.password}\n")
    process = subprocess.Popen(
        [
            *(str(binaries.VALKEY.find()), str(settings), "--port", str(port), "--bind", "127.0.0.1"),
            *("--dir", str(home), "--replicaof", f"127.0.0.1 {link}", "--repl-diskless-sync-delay", "0"),
        ],
        stdout=subprocess.DEVNULL,
    )
    url = f"redis://:{master.password}@127.0.0.1:{port}/0"
    try:

        def in_step() -> bool:
            with contextlib.suppress(redis.RedisError), redis.Redis.from_url(url) as client:
                return client.info("replication")["master_link_status"] == "up"
            return False

        await eventually(in_step, within=60)
        yield url
    finally:
        process.kill()
        process.wait()


async def postgres(folder: Path, setting: str, options: str) -> Loss:
    with embedded.postgres(folder / "postgres") as server:
        return await with_settings(setting, server, f"pgboss+{server.url}?schema=losses{options}")


async def mongo(folder: Path, setting: str, options: str) -> Loss:
    with embedded.mongo(folder / "mongo") as server:
        url = server.url.replace("/?", f"/losses_{abs(hash(options))}?") + options
        return await with_settings(setting, server, f"monque+{url}")


async def measure(folder: Path) -> list[Loss]:
    losses: list[Loss] = []
    for made in (
        valkey(folder, "Valkey, `appendfsync always`", "always"),
        valkey(folder, "Valkey, `appendfsync everysec`", "everysec"),
        valkey_replica(folder / "a", "Valkey, a replica on the same machine takes over", 0.0),
        valkey_replica(folder / "b", "Valkey, a replica takes over whose link stood still for 1 s", 1.0),
        postgres(folder / "on", "PostgreSQL, as it is installed", ""),
        postgres(folder / "off", "PostgreSQL, `synchronous_commit=off`", "&options=-c%20synchronous_commit%3Doff"),
        mongo(folder / "majority", "MongoDB, `w=majority` (jobwire's default)", ""),
        mongo(folder / "one", "MongoDB, `w=1&journal=false`", "&w=1&journal=false"),
    ):
        loss = await made
        losses.append(loss)
        print(f"| {loss.setting} | {loss.acknowledged:,} | {loss.missing:,} |", flush=True)
    return losses


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="jobwire-losses-") as temporary:
        began = time.monotonic()
        asyncio.run(measure(Path(temporary)))
        print(f"{time.monotonic() - began:.0f} s")
