"""Finished pg-boss jobs leave the store only as they were archived, and come back as they were."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime

import psycopg
import pyarrow as pa
import pytest

from awaiting import eventually
from jobwire import InvalidOption, State, Unrecoverable, Worker, urls
from jobwire.backends.pgboss import Boss, GraphJob
from jobwire.errors import StoreRefused
from jobwire.options import NewJob
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.boundary import Stamp, Wanted
from jobwire.pipeline.stores.pgboss.dialect import DIALECT
from pipeline.stores.reading import jobs_in, opened, stamp

from .conftest import QUEUE

FINISHED = Wanted(states=frozenset(state for state in State if state.finished))


@pytest.fixture
async def finished(queue, connection):
    """Jobs that completed, failed and were cancelled, with all that a job can have."""

    async def handler(job):
        await job.update_progress(job.data["n"])
        await job.log("a line")
        if job.data["n"] % 3 == 0:
            raise Unrecoverable("kaputt ✂")
        return [None, {"n": job.data["n"]}, "text", 7][job.data["n"] % 4]

    jobs = [NewJob({"n": n, "t": 'é\n"x"'}, priority=n, extra={"group": {"id": "g"}}) for n in range(12)]
    added = await queue.add_many(jobs)
    async with Worker(QUEUE, handler, connection) as worker:
        await eventually(lambda: worker.stats.completed + worker.stats.failed == 12)
    gone = await queue.add("never", extra={"singletonKey": "k"})
    await queue.cancel(gone.id)
    return [*(job.id for job in added), gone.id]


def batch_of(rows) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=JOBS.arrow)


async def test_purged_jobs_are_gone_with_all_that_belonged_to_them(finished, store, queue, sql):
    rows = jobs_in(store, FINISHED)
    purged = store.purge([stamp(rows[key]) for key in finished])
    assert (list(purged.removed), list(purged.kept)) == (finished, [])
    assert jobs_in(store) == {}
    side = f"{sql.execute('SELECT current_schema() AS name').fetchone()['name']}_jobwire"
    for table in ("progress", "log"):
        assert sql.execute(f"SELECT count(*) AS n FROM {side}.{table}").fetchone()["n"] == 0


async def test_only_what_is_as_it_was_is_purged(finished, store, queue, sql):
    rows = jobs_in(store, FINISHED)
    retried, touched, restated, missing, same = finished[0], finished[1], finished[2], str(uuid.uuid4()), finished[4]
    await queue.admin.retry(retried)
    sql.execute("UPDATE job SET keep_until = keep_until + interval '1 microsecond' WHERE id = %s", [touched])
    stamps = [stamp(rows[key]) for key in (retried, touched)]
    stamps += [
        Stamp(restated, "failed", rows[restated]["fingerprint"]),
        Stamp(missing, "failed", "1"),
        Stamp("x", "failed", "1"),
    ]
    purged = store.purge([*stamps, stamp(rows[same])])
    assert list(purged.removed) == [same]
    assert list(purged.kept) == [retried, touched, restated, missing, "x"]
    assert set(jobs_in(store)) == set(finished) - {same}


async def test_a_job_that_is_retried_while_the_purge_waits_for_it_survives(finished, store, url, schema):
    rows = jobs_in(store, FINISHED)
    with psycopg.connect(urls.parse(url).driver_url) as other:
        other.execute(
            f"""UPDATE "{schema}".job SET state = 'retry', completed_on = NULL WHERE id = %s""", [finished[0]]
        )
        purging = asyncio.create_task(asyncio.to_thread(store.purge, [stamp(rows[key]) for key in finished]))
        with psycopg.connect(urls.parse(url).driver_url, autocommit=True) as look:
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%DELETE FROM%'"
            )
            await eventually(lambda: look.execute(waiting).fetchone()[0])
        other.commit()
        purged = await purging
    assert list(purged.kept) == [finished[0]]
    assert set(jobs_in(store)) == {finished[0]}


async def test_a_parent_whose_children_still_wait_is_kept(connection, sql, url):
    boss = Boss(connection)
    await boss.create_queue("flow")
    ids = await boss.flow([GraphJob("parent", "flow"), GraphJob("child", "flow", depends_on=["parent"])])
    sql.execute("UPDATE job SET state = 'completed', completed_on = now() WHERE id = %s", [ids["parent"]])
    store = opened(url, "flow")
    rows = jobs_in(store)
    assert rows[ids["child"]]["state"] == "waiting_children"
    assert list(store.purge([stamp(rows[ids["parent"]])]).kept) == [ids["parent"]]
    store.close()


async def test_what_is_put_back_is_as_it_was_to_the_last_column(finished, store):
    rows = jobs_in(store, FINISHED)
    store.purge([stamp(row) for row in rows.values()])
    assert store.put_finished(batch_of(rows.values())) == 13
    assert jobs_in(store, FINISHED) == rows
    assert store.put_finished(batch_of(rows.values())) == 0


async def test_jobs_of_another_store_come_in_under_ids_of_their_own(queue, store):
    moment = datetime(2026, 3, 4, 5, 6, 7, 891000, tzinfo=UTC)
    foreign = {
        **dict.fromkeys(JOBS.names), "store": "bullmq+redis://x", "queue": "q", "name": "q", "priority": 3,
        "attempts": 5, "attempts_made": 2, "payload": '{"a":1}', "created_at": moment, "finished_at": moment,
        "raw": '{"opts":{"delay":5}}', "unique_key": "k",
    }  # fmt: skip
    jobs = [
        {**foreign, "id": "17", "state": "completed", "native_state": "completed", "result": "[1]"},
        {**foreign, "id": "mail:x", "state": "failed", "error": "kaputt", "stacktrace": "Error: kaputt\n at x"},
    ]
    assert store.put_finished(batch_of(jobs)) == 2
    assert store.put_finished(batch_of(jobs)) == 0
    done = await queue.get(DIALECT.native_id("17"))
    assert (done.state, done.data, done.result, done.attempts, done.attempts_made) == (
        State.COMPLETED, {"a": 1}, [1], 5, 1,
    )  # fmt: skip
    assert (done.created_at, done.finished_at, done.priority) == (moment, moment, 3)
    failed = await queue.get(DIALECT.native_id("mail:x"))
    assert (failed.error, failed.stacktrace) == ("kaputt", ("Error: kaputt\n at x",))


async def test_a_job_that_has_not_finished_is_not_put(queue, store):
    await queue.add(1)
    [row] = jobs_in(store).values()
    with pytest.raises(InvalidOption, match="must be finished and sound"):
        store.put_finished(batch_of([row]))


async def test_jobs_are_put_into_queues_that_exist(queue, url):
    store = opened(url, "nowhere")
    with pytest.raises(StoreRefused, match="queue 'nowhere' does not exist"):
        store.put_finished(batch_of([]))
    store.close()


async def test_ids_are_present_or_not(queue, store):
    job = await queue.add(1)
    assert set(store.present([job.id, str(uuid.uuid4()), "x"])) == {job.id}
    assert set(store.present([job.id.upper()])) == {job.id.upper()}
