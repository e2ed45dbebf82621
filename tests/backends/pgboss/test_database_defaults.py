"""A database or an account may have defaults of its own. Jobs are the same under all of them."""

from __future__ import annotations

import asyncio
import logging
from urllib.parse import quote

import pytest

from awaiting import eventually
from jobwire import Backoff, NewJob, Queue, State, Worker

JOBS = 1000
DEFAULTS = {
    "isolation": "-c default_transaction_isolation=serializable",
    "dates": "-c datestyle=SQL,DMY -c timezone=Asia/Kolkata -c intervalstyle=sql_standard",
    "names": "-c search_path=",
    "numbers": "-c extra_float_digits=-3 -c bytea_output=escape",
}


@pytest.mark.parametrize("defaults", DEFAULTS)
async def test_workers_share_a_queue_whatever_the_defaults_of_the_database_are(
    jobwire_postgres, unique, caplog, defaults
):
    options = quote(DEFAULTS[defaults], safe="")
    url = f"pgboss+{jobwire_postgres.url}?schema={unique}&options={options}"

    async def handle(job):
        if job.data["n"] % 10 == 0 and job.attempts_made == 0:
            raise LookupError("not yet")
        await asyncio.sleep(0)

    async with Queue("work", url) as queue:
        await queue.add_many([NewJob({"n": n}, attempts=2, backoff=Backoff.fixed(0)) for n in range(JOBS)])
        with caplog.at_level(logging.WARNING):
            async with Worker("work", handle, url, concurrency=50), Worker("work", handle, url, concurrency=50):
                late = await queue.add({"n": 1}, delay=0.5)
                await late.wait(timeout=30)

                async def done() -> bool:
                    return (await queue.counts())[State.COMPLETED] == JOBS + 1

                await eventually(done, within=30)
        assert [record.message for record in caplog.records if "not yet" not in record.message] == []
        ran = await queue.get(late.id)
        assert (ran.run_at - ran.created_at).total_seconds() == 0.5
        assert ran.started_at >= ran.run_at
