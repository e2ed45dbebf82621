"""A producer in a process of its own: `python producer_program.py SETTINGS` (JSON) adds jobs until SIGTERM.

The settings are url, folder, name, first (the number of its first job), rate (jobs a second) and extra (native options
of each job). A call that raises is not repeated, and its job may or may not be there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any

from faults.kinds import ATTEMPTS, kind_of
from faults.ledger import Book, Kind


@dataclass(frozen=True)
class Settings:
    """What the program was asked to do."""

    url: str
    folder: str
    name: str
    first: int
    rate: float
    extra: dict[str, Any]


async def produce(settings: Settings, book: Book) -> None:
    from jobwire import Feature, JobwireError, NewJob, Queue

    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with Queue("work", settings.url) as queue:
        tries: dict[str, Any] = {"attempts": ATTEMPTS} if queue.capabilities.has(Feature.ATTEMPTS) else {}

        def job(n: int) -> NewJob:
            kind = kind_of(n)
            return NewJob({"n": n, "kind": kind.name}, delay=kind.delay, extra=settings.extra, **tries)

        n, began = settings.first, time.monotonic()
        while not over.is_set():
            numbers = range(n, n + random.choice([1, 1, 1, 10]))
            n = numbers.stop
            for number in numbers:
                book.write(Kind.INTENDED, n=number)
            try:
                if len(numbers) == 1:
                    added = [await queue.add_job(job(numbers.start))]
                else:
                    added = list(await queue.add_many([job(number) for number in numbers]))
            except JobwireError as error:
                for number in numbers:
                    book.write(Kind.REFUSED, n=number, detail=f"{type(error).__name__}: {error}")
                await asyncio.sleep(0.05)
                began = time.monotonic() - (n - settings.first) / settings.rate  # it does not catch up
            else:
                for number, one in zip(numbers, added, strict=True):
                    book.write(Kind.ACKNOWLEDGED, n=number, job=one.id)
            await asyncio.sleep(max(0.0, began + (n - settings.first) / settings.rate - time.monotonic()))


def main(text: str) -> None:
    settings = Settings(**json.loads(text))
    log = os.open(f"{settings.folder}/{settings.name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(produce(settings, Book(settings.folder, settings.name)))


if __name__ == "__main__":
    main(sys.argv[1])
