"""Rows that another client wrote, with values that are allowed and absurd: each costs at most itself."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from awaiting import eventually
from jobwire import Connection, NewJob, Queue, State, Worker, connect
from jobwire.backends.pgboss import Boss
from jobwire.native import PgBossWorker

GOOD = 6
MOST, LEAST = 2**31 - 1, -(2**31)
NUMBERS = st.sampled_from([MOST, MOST - 1, LEAST, -1, 0, 1, 10**9])
TIMES = st.sampled_from(
    ["infinity", "-infinity", "4000-01-01 BC", "294276-12-31 23:59:59", "10000-01-01", "1970-01-01", "now"]
)
DEEP = "[" * 3000 + "]" * 3000
DEEP_BUT_READ = "[" * 1000 + "]" * 1000
JSON = st.sampled_from(
    [DEEP, DEEP_BUT_READ, "1e400", "1e5000", '{"value": 1e400}', '{"message": {"a": [1]}}', '""', "null", "[[]]"]
)
COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "data": JSON, "output": JSON, "priority": NUMBERS, "retry_limit": NUMBERS, "retry_count": NUMBERS,
    "retry_delay": NUMBERS, "retry_delay_max": NUMBERS, "expire_seconds": NUMBERS, "deletion_seconds": NUMBERS,
    "heartbeat_seconds": NUMBERS, "created_on": TIMES, "start_after": TIMES, "started_on": TIMES, "keep_until": TIMES,
    "heartbeat_on": TIMES, "completed_on": TIMES, "retry_backoff": st.booleans(),
    "state": st.sampled_from(["created", "retry", "active", "completed", "failed", "cancelled"]),
    "singleton_key": st.sampled_from(["", "%s", "ÿ🚀"]), "policy": st.sampled_from(["", "unheard of"]),
}  # fmt: skip
ROWS = st.lists(st.fixed_dictionaries({}, optional=COLUMNS), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def place(jobwire_postgres):
    return f"pgboss+{jobwire_postgres.url}?schema=foreign_{uuid.uuid4().hex[:8]}"


async def new_queue(connection: Connection) -> Queue:
    queue = Queue(f"work-{uuid.uuid4().hex[:8]}", connection)
    await connection.backend.register(queue.name)
    return queue


async def put(queue: Queue, rows: list[dict[str, Any]]) -> None:
    """Write rows as a foreign client would, past every check of ours."""
    address = queue.connection.address
    server = address.driver_url
    async with await psycopg.AsyncConnection.connect(server, autocommit=True) as database:
        for row in rows:
            columns = {"name": queue.name, **row}
            await database.execute(
                sql.SQL("INSERT INTO {}.job ({}) VALUES ({})").format(
                    sql.Identifier(address.options["schema"]),
                    sql.SQL(", ").join(map(sql.Identifier, columns)),
                    sql.SQL(", ").join([sql.Placeholder()] * len(columns)),
                ),
                list(columns.values()),
            )


class NotOneOfOurs(Exception):
    pass


async def handle(job: Any) -> Any:
    if not isinstance(job.data, dict) or "good" not in job.data:
        raise NotOneOfOurs
    return job.data


class Counting(logging.Handler):
    """Counts warnings and errors, except failures of the handler: a foreign row may ask for a billion attempts."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is None or record.exc_info[0] is not NotOneOfOurs:
            self.count += 1


async def run_among(place: str, rows: list[dict[str, Any]]) -> None:
    async with connect(place) as connection:
        queue = await new_queue(connection)
        before = await queue.add_many([NewJob({"good": n}) for n in range(GOOD // 2)])
        await put(queue, rows)
        after = await queue.add_many([NewJob({"good": n}) for n in range(GOOD // 2)])
        ids = [job.id for job in (*before, *after)]

        async def completed() -> bool:
            jobs = [await queue.get(job_id) for job_id in ids]
            return all(job is not None and job.state is State.COMPLETED for job in jobs)

        counting = Counting(logging.WARNING)
        logger = logging.getLogger("jobwire")
        logger.addHandler(counting)
        options = {"recover_every": 0.2, "native": PgBossWorker(monitor_interval=0.5, maintenance_interval=0.5)}
        try:
            async with Worker(queue.name, handle, connection, concurrency=3, **options) as worker:
                await eventually(completed, within=30)
                await Boss(connection).supervise()
                assert worker.running
        finally:
            logger.removeHandler(counting)
        assert counting.count < 60
        for state in State:
            cursor: str | None = None
            while (page := await queue.jobs(state, limit=2, cursor=cursor)).cursor is not None:
                cursor = page.cursor
        await queue.counts()


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(side_by_side=st.lists(ROWS, min_size=4, max_size=4))
def test_good_jobs_complete_among_any_foreign_rows(place, side_by_side):
    async def run_all() -> None:
        await asyncio.gather(*(run_among(place, rows) for rows in side_by_side))

    asyncio.run(run_all())


@pytest.mark.parametrize(
    "row",
    [
        {"data": DEEP}, {"data": "1e400"}, {"data": "1e5000"}, {"created_on": "-infinity"},
        {"created_on": "4000-01-01 BC"}, {"retry_count": MOST, "started_on": "now", "state": "retry"},
        {"start_after": "infinity"}, {"heartbeat_on": "294276-12-31", "heartbeat_seconds": MOST, "state": "active"},
        {"output": DEEP_BUT_READ, "state": "failed", "completed_on": "now"}, {"output": "1e400", "state": "failed"},
        {"retry_delay": MOST, "retry_backoff": True, "retry_limit": 9}, {"priority": LEAST},
    ],
    ids=",".join,
)  # fmt: skip
def test_good_jobs_complete_beside(place, row):
    asyncio.run(run_among(place, [row, row]))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"data": DEEP}, "data: not JSON: nested deeper than"),
        ({"retry_count": MOST, "started_on": "now"}, "retry_count"),
    ],
    ids=["data", "retry_count"],
)
async def test_the_reason_of_a_row_that_can_not_be_run_names_the_field(place, row, reason):
    async with connect(place) as connection:
        queue = await new_queue(connection)
        await put(queue, [{**row, "retry_limit": 5}])
        async with Worker(queue.name, handle, connection):
            [job] = await eventually(lambda: queue.jobs(State.FAILED))
        assert job.error is not None
        assert job.error.startswith(reason)


@pytest.mark.slow
async def test_an_idle_worker_beside_absurd_rows_stays_idle(place):
    async with connect(place) as connection:
        queue = await new_queue(connection)
        await put(
            queue, [{"start_after": "infinity"}, {"start_after": "294276-12-31"}, {"start_after": "4000-01-01 BC"}]
        )
        async with Worker(queue.name, handle, connection) as worker:
            await eventually(lambda: worker.stats.failed == 1)
            calls, began = worker.stats.calls, time.monotonic()
            await asyncio.sleep(2)
            assert worker.stats.calls - calls <= 2 + (time.monotonic() - began)


@pytest.mark.parametrize(
    ("state", "moment"), [("completed", "completed_on"), ("cancelled", "completed_on"), ("active", "started_on")]
)
async def test_rows_without_the_moment_that_orders_them_are_on_one_page_each(place, state, moment):
    async with connect(place) as connection:
        queue = await new_queue(connection)
        await put(queue, [{"state": state}] * 3 + [{"state": state, moment: "2020-01-01"}] * 2)
        whole = [job.id for job in await queue.jobs(state)]
        assert len(whole) == 5
        for reverse, expected in ((False, whole), (True, whole[::-1])):
            seen: list[str] = []
            cursor: str | None = None
            while (page := await queue.jobs(state, limit=1, cursor=cursor, reverse=reverse)).cursor is not None:
                seen.append(page[0].id)
                cursor = page.cursor
            assert [*seen, page[0].id] == expected
