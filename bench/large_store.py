"""A store with one large queue and many small ones, on each protocol.

A part of the large queue is made by adding jobs and running a worker. Where that is quick it makes all of it, otherwise
the stored jobs are copied inside the server, so that each has exactly the fields that jobwire writes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from pymongo import MongoClient

from jobwire import ActiveJob, Connection, NewJob, Queue, Worker, embedded
from jobwire.embedded import Server

LARGE = "orders"
_STEP = 10_000
_MADE = 20_000
"""Jobs that are added and run before they are copied."""
_RUN, _DELAYED = 0.4, 0.1
"""Parts of the large queue that are run, a quarter of them in vain, and that are delayed. The others wait."""
_ERRORS = (ValueError, TimeoutError, KeyError, ConnectionError, RuntimeError)
_DATABASE = "bench"
_COPY_ROWS = """
    INSERT INTO pgboss.job ({columns}, id, created_on, start_after, started_on, completed_on)
    SELECT {columns}, gen_random_uuid(), created_on + later, start_after + later, started_on + later,
        completed_on + later
    FROM pgboss.job, generate_series(1, %s) n, LATERAL (
        SELECT (n * 1000 + (data->>'n')::integer %% 1000 - 3600000) * interval '1 millisecond' AS later
    ) l
    WHERE name = %s"""
# Copies are spread over the last hour, as jobs are that come one by one.
_OWN_COLUMNS = ("id", "created_on", "start_after", "started_on", "completed_on")


@dataclass(frozen=True, slots=True)
class Store:
    """A server with its queues."""

    protocol: str
    url: str
    server: Server


@contextlib.contextmanager
def started(protocol: str, folder: Path) -> Generator[Store]:
    """Starts the server of a protocol. It syncs nothing to the disk."""
    if protocol == "pgboss":
        with embedded.postgres(folder, durable=False) as server:
            yield Store(protocol, f"pgboss+{server.url}", server)
    elif protocol == "monque":
        with embedded.mongo(folder, durable=False) as server:
            # Jobs have no attempts of their own there: a failure is the last one.
            url = server.url.replace("/?", f"/{_DATABASE}?max_retries=1&")
            yield Store(protocol, f"monque+{url}", server)
    else:
        with embedded.valkey(folder, durable=False) as server:
            yield Store(protocol, f"{protocol}+{server.url}", server)


async def fill(store: Store, jobs: int, queues: int) -> None:
    """Makes the large queue, and small queues of three jobs each."""
    copied = store.protocol in ("pgboss", "monque") and jobs > _MADE
    async with Connection(store.url) as connection:
        await _make(connection, _MADE if copied else jobs, {} if store.protocol == "monque" else {"attempts": 1})
        if copied:
            _COPIES[store.protocol](store.server.url, jobs // _MADE - 1)
        for number in range(queues):
            queue = Queue(f"small-{number:04}", connection)
            await queue.add_many([NewJob({"n": 1}), NewJob({"n": 2}), NewJob({"n": 3}, delay=86_400)])


async def _make(connection: Connection, jobs: int, once: dict[str, Any]) -> None:
    """Adds jobs and runs some of them. The errors are of several classes."""

    async def handler(job: ActiveJob) -> Any:
        if job.data["n"] % 4 == 0:
            raise _ERRORS[job.data["n"] % len(_ERRORS)](f"order {job.data['n']} was refused by the warehouse")
        return {"parcel": job.data["n"]}

    run, delayed = round(jobs * _RUN), round(jobs * _DELAYED)
    async with Queue(LARGE, connection) as queue:
        await _add(queue, run, once)
        await Worker(LARGE, handler, connection, concurrency=200).run_until_idle(signals=False)
        await _add(queue, delayed, {**once, "delay": 86_400})
        await _add(queue, jobs - run - delayed, once)


async def _add(queue: Queue, jobs: int, options: dict[str, Any]) -> None:
    for first in range(0, jobs, _STEP):
        numbers = range(first, min(first + _STEP, jobs))
        await queue.add_many([NewJob({"n": n, "customer": f"c{n % 997}"}, **options) for n in numbers])


def _copy_rows(url: str, times: int) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        found = database.execute("SELECT column_name FROM information_schema.columns WHERE table_name = 'job'")
        columns = ", ".join(name for (name,) in found if name not in _OWN_COLUMNS)
        database.execute(_COPY_ROWS.format(columns=columns), (times, LARGE))  # type: ignore[arg-type]
        database.execute("VACUUM ANALYZE pgboss.job_common")


def _copy_documents(url: str, times: int) -> None:
    moved = {
        field: {"$add": [f"${field}", {"$multiply": ["$n", 1000]}, {"$mod": ["$data.n", 1000]}, -3_600_000]}
        for field in ("nextRunAt", "createdAt", "updatedAt")
    }
    with MongoClient[dict[str, Any]](url) as client:
        jobs = client[_DATABASE]["monque_jobs"]
        ids = [one["_id"] for one in jobs.find({"name": LARGE}, {"_id": 1})]
        for first in range(0, len(ids), 500):
            jobs.aggregate(
                [
                    {"$match": {"_id": {"$in": ids[first : first + 500]}}},
                    {"$set": {"n": {"$range": [1, times + 1]}}},
                    {"$unwind": "$n"},
                    {"$set": moved},
                    {"$unset": ["_id", "n"]},
                    {"$merge": {"into": "monque_jobs"}},
                ]
            )


_COPIES = {"pgboss": _copy_rows, "monque": _copy_documents}
