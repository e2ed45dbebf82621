"""A worker of campaigns in a process of its own, for tests that kill it.

The transport `plain:FILE` appends a line for each message and honours no idempotency key.
"""

from __future__ import annotations

import asyncio
import os

from jobwire.campaigns import CampaignWorker
from jobwire.campaigns.transports import Message, Receipt


class PlainFile:
    """Appends the id of each message to a file, also of one that was sent before."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def send(self, message: Message) -> Receipt:
        os.write(self._file, f"{message.job_id} {message.channel_id}\n".encode())
        return Receipt()


async def work(url: str, schema: str, queue_schema: str, transport: str, concurrency: str) -> None:
    given = PlainFile(transport.partition(":")[2]) if transport.startswith("plain:") else transport
    worker = CampaignWorker(
        url, given, schema=schema, queue_schema=queue_schema, concurrency=int(concurrency), lost_after=2, lease=2,
        recover_every=0.5,
    )  # fmt: skip
    async with worker:
        await worker.run()


def main(*arguments: str) -> None:
    asyncio.run(work(*arguments))
