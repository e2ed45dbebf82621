"""TLS: the server behind a real TLS front, with a certificate made for this test and for nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from jobwire import Queue, StoreUnavailable, Worker
from jobwire.embedded import Server
from jobwire.worker.active import ActiveJob

from .tls_front import TLS, tls_front


@pytest.fixture
async def secure_port(jobwire_valkey: Server) -> AsyncIterator[int]:
    """Where the run's Valkey is reached by TLS only."""
    async with tls_front(urlsplit(jobwire_valkey.url).port or 0) as port:
        yield port


async def test_a_queue_and_a_worker_speak_tls(jobwire_valkey: Server, secure_port: int, prefix: str) -> None:
    login = f":{urlsplit(jobwire_valkey.url).password}@"
    url = f"bullmq+rediss://{login}127.0.0.1:{secure_port}/0?prefix={prefix}&ssl_ca_certs={TLS / 'certificate.pem'}"

    async def handle(job: ActiveJob) -> int:
        return job.data + 1

    async with Queue("work", url) as queue:
        worker = Worker("work", handle, url)
        running = asyncio.create_task(worker.run(signals=False))
        try:
            job = await queue.add(1)
            assert await job.wait(timeout=10) == 2
        finally:
            await worker.stop()
            await running


async def test_a_certificate_of_a_stranger_is_not_trusted(secure_port: int, prefix: str) -> None:
    for authority in (f"&ssl_ca_certs={TLS / 'stranger.pem'}", ""):
        queue = Queue("work", f"bullmq+rediss://127.0.0.1:{secure_port}/0?prefix={prefix}{authority}")
        with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
            await queue.open()
        await queue.close()


async def test_a_certificate_for_another_name_is_not_trusted(jobwire_valkey: Server, prefix: str) -> None:
    async with tls_front(urlsplit(jobwire_valkey.url).port or 0, "127.0.0.2") as port:
        where = f"bullmq+rediss://127.0.0.2:{port}/0?prefix={prefix}&ssl_ca_certs={TLS / 'certificate.pem'}"
        queue = Queue("work", where)
        with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
            await queue.open()
        await queue.close()
        login = f":{urlsplit(jobwire_valkey.url).password}@"
        url = f"{where}&ssl_check_hostname=false".replace("//", f"//{login}", 1)
        async with Queue("work", url) as unchecked:
            await unchecked.counts()


async def test_a_server_without_tls_is_not_spoken_to(jobwire_valkey: Server) -> None:
    plain = urlsplit(jobwire_valkey.url)
    queue = Queue("work", f"bullmq+rediss://127.0.0.1:{plain.port}/0?socket_connect_timeout=0.5")
    with pytest.raises(StoreUnavailable):
        await queue.open()
    await queue.close()
