"""A worker whose clock is five minutes wrong works as any other: every time in the database is the database's."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from awaiting import eventually
from faults.echo_worker import echo
from jobwire import Queue, Worker
from jobwire.native import PgBossWorker

PROGRAM = str(Path(__file__).parent / "wrong_clock_worker.py")


@pytest.mark.parametrize("offset", [300, -300])
@pytest.mark.timeout(120)
@pytest.mark.slow
async def test_a_clock_that_is_wrong_changes_nothing(jobwire_postgres, unique, offset):
    url = f"pgboss+{jobwire_postgres.url}?schema={unique}"
    async with await psycopg.AsyncConnection.connect(
        jobwire_postgres.url, autocommit=True, row_factory=dict_row
    ) as database:

        async def ask(query: str) -> list[dict]:
            return await (await database.execute(query.format(job=f"{unique}.job"))).fetchall()

        # A worker with the right clock beside it must not take its jobs away.
        async with (
            Queue("work", url),
            Worker("other", echo, url, recover_every=0.2, native=PgBossWorker(monitor_interval=0.3)),
        ):
            wrong = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, url, str(offset))
            try:
                await eventually(
                    lambda: _count(ask, "SELECT count(*) AS n FROM {job} WHERE state = 'completed'", 3), within=60
                )
            finally:
                wrong.send_signal(signal.SIGTERM)
                await wrong.wait()
        rows = {
            row["kind"]: row
            for row in await ask(
                "SELECT data->>'kind' AS kind, state::text, retry_count,"
                " extract(epoch FROM started_on - created_on)::float8 AS waited,"
                " abs(extract(epoch FROM created_on - now()))::float8 AS age,"
                " extract(epoch FROM start_after - singleton_on AT TIME ZONE 'UTC')::float8 AS into_slot"
                " FROM {job} ORDER BY created_on"
            )
        }
    assert rows["delayed"]["state"] == rows["long"]["state"] == "completed"
    assert 1.9 <= rows["delayed"]["waited"] < 30
    assert (rows["long"]["retry_count"], rows["long"]["state"]) == (0, "completed")
    assert max(row["age"] for row in rows.values()) < 100
    # The second of the debounced ones waits for the next slot, and not for a slot as the wrong clock has it.
    assert rows["debounced"]["state"] == "created"
    assert 0 <= rows["debounced"]["into_slot"] <= 2


async def _count(ask, query: str, wanted: int) -> bool:
    return (await ask(query))[0]["n"] >= wanted
