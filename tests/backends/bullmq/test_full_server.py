"""A server without memory left takes no new jobs, and lets workers go on: finished jobs are what frees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from redis.asyncio import Redis

from jobwire import embedded
from jobwire.backend import Completed, Failed, Verdict
from jobwire.connection import load_backend
from jobwire.errors import StoreUnavailable
from jobwire.options import NewJob
from jobwire.urls import parse

from .jobs import add, claim, consumer


async def test_workers_go_on_where_producers_must_wait(tmp_path: Path) -> None:
    with embedded.valkey(tmp_path, durable=False) as server:
        backend = load_backend(parse(f"bullmq+{server.url}"))
        await backend.open()
        worker = consumer(backend)
        await add(backend, *(NewJob(number, attempts=2, keep_completed=False) for number in range(3)))
        async with Redis.from_url(server.url) as redis:
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
