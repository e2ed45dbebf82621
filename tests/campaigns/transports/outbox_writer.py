"""A program that sends messages to an outbox, whose path is its first argument: so many from a first number on. It
prints the number and the id of the receipt of each."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.transports.messages import message
from jobwire.campaigns.transports import Sender, transport_of


async def send(path: str, first: int, count: int) -> None:
    async with Sender(transport_of(f"outbox:{path}")) as sender:
        for number in range(first, first + count):
            receipt = await sender.send(message(number, text="x" * (number * 977 % 20_000 + 1)))
            os.write(1, f"{number} {receipt.id}\n".encode())


def main(path: str, first: str, count: str) -> None:
    asyncio.run(send(path, int(first), int(count)))
