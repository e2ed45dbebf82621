"""A server without memory left takes no new jobs, and lets workers go on: finished jobs are what frees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from jobwire import Keep, embedded
from jobwire.boundary import Completed, Failed, Verdict
from jobwire.connection import load_backend
from jobwire.errors import StoreUnavailable
from jobwire.options import NewJob
from jobwire.urls import parse

from .jobs import add, claim, consumer
from .redis_62 import KINDS, redis_62


@pytest.fixture(params=KINDS)
def own_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a server that nobody else uses."""
    if request.param == "Valkey":
        with embedded.valkey(tmp_path, durable=False) as server:
            yield server.url
    else:
        with redis_62(tmp_path) as url:
            yield url


async def test_workers_go_on_where_producers_must_wait(own_server: str) -> None:
    backend = load_backend(parse(f"bullmq+{own_server}"))
    await backend.open()
    worker = consumer(backend)
    await add(backend, *(NewJob(number, attempts=2, keep_completed=Keep.NONE) for number in range(3)))
    async with Redis.from_url(own_server) as redis:
        await redis.config_set("maxmemory", 1)
    with pytest.raises(StoreUnavailable, match="maxmemory"):
        await add(backend, NewJob(4))
    first, second = await claim(worker, 2)
    settled = await worker.settle([Completed(first, b"1"), Failed(second, "boom")], 2)
    assert list(settled.verdicts) == [Verdict.COMPLETED, Verdict.RETRIED]
    assert [one.job.id for one in settled.claims] == ["3", "2"]
    assert list(await worker.extend(list(settled.claims))) == []
    [recovery] = worker.duties()
    assert list((await recovery.run()).recovered) == []
    await backend.close()
