"""Workers killed under load: every job is completed once, and what its handler wrote with it is there once."""

from __future__ import annotations

import random
from collections import Counter

import psycopg
import pytest

from awaiting import eventually
from faults.nursery import nursery
from jobwire import NewJob, Queue, State

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KILLS, FLEET, BATCH = 50, 3, 120


async def test_fifty_kills_under_load_lose_nothing_and_complete_nothing_twice(jobwire_postgres, unique):
    url = f"pgboss+{jobwire_postgres.url}?schema={unique}"
    added: set[str] = set()
    async with Queue("work", url) as queue:
        database = await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True)
        await database.execute("CREATE TABLE IF NOT EXISTS ledger (n integer)")
        # The database itself keeps count of completions: one that is undone and done again would show.
        await database.execute(
            f"CREATE TABLE {unique}.done (id uuid);"
            f" CREATE FUNCTION {unique}.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" INSERT INTO {unique}.done VALUES (NEW.id); RETURN NEW; END $$;"
            f" CREATE TRIGGER note AFTER UPDATE OF state ON {unique}.job_common FOR EACH ROW"
            f" WHEN (NEW.state = 'completed') EXECUTE FUNCTION {unique}.note()"
        )
        first = random.randrange(10**6) * 1000

        async def add_more() -> None:
            start = first + len(added)
            added.update(job.id for job in await queue.add_many([NewJob({"n": start + n}) for n in range(BATCH)]))

        async def moved(since: int) -> bool:
            counts = await queue.counts()
            if counts[State.WAITING] < BATCH:
                await add_more()
            return counts[State.COMPLETED] > since + 5

        async def all_done() -> bool:
            counts = await queue.counts()
            return counts[State.COMPLETED] == len(added)

        async with nursery("pgboss_worker", url) as workers:
            fleet = [await workers.start(url) for _ in range(FLEET)]
            for _ in range(KILLS):
                since = (await queue.counts())[State.COMPLETED]
                await eventually(lambda s=since: moved(s), within=60)
                workers.kill(fleet.pop(0))
                fleet.append(await workers.start(url))
            await eventually(all_done, within=90)
        counts = await queue.counts()
        completions = await (await database.execute(f"SELECT id::text FROM {unique}.done")).fetchall()
        written = await (
            await database.execute("SELECT n FROM ledger WHERE n >= %s AND n < %s", [first, first + len(added)])
        ).fetchall()
        await database.close()
    assert {state: n for state, n in counts.items() if n} == {State.COMPLETED: len(added)}
    assert Counter(row[0] for row in completions) == Counter(added)
    assert sorted(row[0] for row in written) == [n for n in range(first, first + len(added)) if n % 2]
