"""A worker in a process of its own, for faults: `python worker_program.py SETTINGS`, which is JSON.

    url, folder, name       where it works, and the file of the ledger that it writes
    concurrency, lease      as of a Worker
    claimers                how many such workers the process has, on one connection
    nap                     the longest time that a handler takes, in seconds
    ahead                   seconds by which its clock is wrong
    executor                "process" runs handlers in child processes
    native                  the class of native options and their values, or null
    rate                    starts in a period over all workers, and its seconds, or null
    written                 a table that handlers write to in the transaction that completes their job, or null

Nothing of jobwire is imported before the clock is set.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import logging
import os
import random
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faults.ledger import Book, Kind
from faults.parent import end_with_parent

if TYPE_CHECKING:
    from jobwire import ActiveJob, Connection


@dataclass(frozen=True)
class Settings:
    """What the program was asked to do."""

    url: str
    folder: str
    name: str
    concurrency: int = 8
    claimers: int = 1
    lease: float = 2.0
    nap: float = 0.02
    ahead: float = 0.0
    executor: str | None = None
    native: tuple[str, dict[str, Any]] | None = None
    rate: tuple[int, float] | None = None
    written: str | None = None


def set_clock(ahead: float) -> None:
    """Makes every clock of this process wrong by so many seconds."""
    right, right_ns = time.time, time.time_ns
    time.time = lambda: right() + ahead
    time.time_ns = lambda: right_ns() + round(ahead * 1e9)

    real = datetime.datetime

    class Lenient(type):
        """Lets the class know the dates that a driver written in C has made."""

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

    class Datetime(datetime.datetime, metaclass=Lenient):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return super().now(tz) + datetime.timedelta(seconds=ahead)

    datetime.datetime = Datetime


def _fails(kind: str, attempts_made: int) -> bool:
    return kind == "poison" or (kind == "flaky" and attempts_made == 0)


def _started(book: Book, job: Any) -> None:
    claimed = job.started_at.timestamp() if job.started_at is not None else 0.0
    book.write(Kind.STARTED, n=job.data["n"], job=job.id, token=job.token, claimed=claimed)


class Handler:
    """Writes down each run. The result, or the error, has the token of the claim under which it was made."""

    def __init__(self, settings: Settings, book: Book) -> None:
        self._settings = settings
        self._book = book

    async def __call__(self, job: ActiveJob) -> dict[str, Any]:
        _started(self._book, job)
        end = "cancelled"
        try:
            n = job.data["n"]
            if self._settings.written is not None and n % 2:
                await self._write(job)
            await asyncio.sleep(random.uniform(0, self._settings.nap))
            if _fails(job.data["kind"], job.attempts_made):
                end = "raised"
                raise ValueError(f"it must fail: {job.token}")
            end = "returned"
            return {"n": n, "token": job.token}
        finally:
            self._book.write(Kind.ENDED, n=job.data["n"], job=job.id, token=job.token, detail=end)

    async def _write(self, job: ActiveJob) -> None:
        """Writes a row that commits with the job. If the database does not answer, the job is put off uncharged."""
        from jobwire import Snooze

        try:
            async with asyncio.timeout(5):
                connection = await job.transaction()
                insert = f"INSERT INTO {self._settings.written} (n, token) VALUES (%s, %s)"
                await connection.execute(insert, [job.data["n"], job.token])
        except Exception as error:
            raise Snooze(0.2) from error


def handle_in_process(job: Any) -> dict[str, Any]:
    """Does the same in a child process, which has a file of its own in the ledger."""
    settings = Settings(**json.loads(os.environ["FAULTS_WORKER"]))
    book = Book(settings.folder, f"{settings.name}-child-{os.getpid()}")
    _started(book, job)
    time.sleep(random.uniform(0, settings.nap))
    if _fails(job.data["kind"], job.attempts_made):
        book.write(Kind.ENDED, n=job.data["n"], job=job.id, token=job.token, detail="raised")
        raise ValueError(f"it must fail: {job.token}")
    book.write(Kind.ENDED, n=job.data["n"], job=job.id, token=job.token, detail="returned")
    return {"n": job.data["n"], "token": job.token}


class Verdicts:
    """Writes down what the store made of each outcome."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def started(self, claim: Any) -> None: ...

    def settled(self, outcome: Any, verdict: Any) -> None:
        claim = outcome.claim
        self._book.write(Kind.VERDICT, job=claim.job.id, token=claim.token, detail=verdict.value)


def main(text: str) -> None:
    end_with_parent()
    settings = Settings(**json.loads(text))
    book = Book(settings.folder, settings.name)
    log = os.open(f"{settings.folder}/{settings.name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    if settings.ahead:
        set_clock(settings.ahead)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")

    asyncio.run(work(text, settings, book))


async def work(text: str, settings: Settings, book: Book) -> None:
    from jobwire import Rate, Worker, connect, native

    handler: Any = Handler(settings, book)
    if settings.executor == "process":
        os.environ["FAULTS_WORKER"] = text
        handler = handle_in_process
    options = getattr(native, settings.native[0])(**settings.native[1]) if settings.native else None

    def worker(connection: str | Connection) -> Worker:
        return Worker(
            "work",
            handler,
            connection,
            concurrency=settings.concurrency,
            executor=settings.executor,  # pyright: ignore[reportArgumentType]
            lease=settings.lease,
            recover_every=0.3,
            max_stalled=1_000_000,
            call_timeout=5.0,
            shutdown_timeout=5.0,
            wait_for_store=120.0,
            observers=[Verdicts(book)],
            native=options,
            rate=Rate(*settings.rate) if settings.rate else None,
        )

    if settings.claimers == 1:
        await worker(settings.url).run()
        return
    async with connect(settings.url) as connection:
        first, *others = [worker(connection) for _ in range(settings.claimers)]
        running = [asyncio.create_task(one.run(signals=False)) for one in others]
        await first.run()
        await asyncio.gather(*(one.stop() for one in others))
        await asyncio.gather(*running)


if __name__ == "__main__":
    from faults.worker_program import main  # the handler of child processes is found under this name

    main(sys.argv[1])
