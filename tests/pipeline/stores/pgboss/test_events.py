"""What pg-boss's rows tell of the past, and that no transaction is too slow to be heard."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import psycopg
import pytest

from awaiting import eventually
from jobwire import Backoff, Connection, Queue, Unrecoverable, Worker, connect, embedded, urls
from jobwire.boundary import ConsumerSettings
from jobwire.native import PgBossWorker
from jobwire.options import NewJob
from jobwire.pipeline.stores.pgboss import events
from pipeline.stores.reading import events_between, kinds, news, opened

from .conftest import QUEUE


async def work(connection: Connection, handler, count: int, native: PgBossWorker | None = None) -> None:
    async with Worker(QUEUE, handler, connection, concurrency=4, name="w1", native=native) as worker:
        await eventually(lambda: worker.stats.completed + worker.stats.failed + worker.stats.retried >= count)


async def test_a_life_is_told_from_creation_to_end(queue, connection, store):
    async def handler(job):
        if job.data == "bad":
            raise Unrecoverable("no such address")

    good, bad, dropped = await queue.add_many([NewJob("good"), NewJob("bad"), NewJob("dropped", delay=3600)])
    await work(connection, handler, 2)
    await queue.cancel(dropped.id)
    told, end = news(store, store.first_offset())
    assert kinds(told, good.id) == ["created", "active", "completed"]
    assert kinds(told, bad.id) == ["created", "active", "failed"]
    assert kinds(told, dropped.id) == ["created", "cancelled"]
    [failed] = [one for one in told if one["kind"] == "failed"]
    assert json.loads(failed["data"])["error"] == "no such address"
    job = await queue.get(bad.id)
    assert failed["at"] == job.finished_at
    assert failed["id"] == f"{bad.id}:0:failed:{round(job.finished_at.timestamp() * 1e6)}"
    assert {one["malformed"] for one in told} == {None}
    assert store.passed(end, end)
    assert not store.passed(store.first_offset(), end)


async def test_a_run_after_a_failure_has_the_time_of_its_own_readiness(queue, connection, store):
    async def handler(job):
        if job.attempts_made < 2:
            raise ValueError("busy")

    job = await queue.add(1, attempts=3, backoff=Backoff.fixed(0))
    await work(connection, handler, 3)

    told, _ = news(store, store.first_offset())

    [active] = [one for one in told if one["kind"] == "active"]
    data = json.loads(active["data"])
    assert (data["retry_count"], kinds(told, job.id)) == (2, ["created", "active", "completed"])
    created = next(one["at"] for one in told if one["kind"] == "created")
    assert created < datetime.fromisoformat(data["ready"]) <= active["at"]


async def test_attempts_that_a_worker_remembers_are_all_there(queue, connection, store):
    async def handler(job):
        if job.attempts_made < 3:
            raise ValueError(f"busy {job.attempts_made}")

    job = await queue.add(1, attempts=4, backoff=Backoff.fixed(0))
    await work(connection, handler, 4, PgBossWorker(remember_attempts=timedelta(days=7)))

    told, end = news(store, store.first_offset())

    of_job = [one for one in told if one["job_id"] == job.id]
    lived = sorted(of_job, key=lambda one: (one["at"], json.loads(one["data"]).get("retry_count", 0)))
    assert [one["kind"] for one in lived] == ["created", *["active", "retry"] * 3, "active", "completed"]
    data = [json.loads(one["data"]) for one in lived]
    assert [one["error"] for one in data if "error" in one] == ["busy 0", "busy 1", "busy 2"]
    assert {(one["name"], one["worker"]) for one in data if "error" in one} == {("ValueError", "w1")}
    assert [one["retry_count"] for one in data[1:]] == [0, 0, 1, 1, 2, 2, 3, 3]
    for put_back, again in zip(lived[2:-1:2], lived[3::2], strict=True):
        due = json.loads(again["data"])["ready"]
        assert put_back["at"] <= datetime.fromisoformat(due) <= again["at"]
    assert events_between(store, store.first_offset(), end) == told


async def test_a_run_of_a_dead_worker_is_told_as_stalled_if_it_is_remembered(queue, connection, store, schema, sql):
    native = PgBossWorker(remember_attempts=3600)
    job = await queue.add(1)
    dead = connection.backend.consumer(ConsumerSettings(QUEUE, "dead", native=native))
    await dead.settle([], claim=1)
    sql.execute(f"UPDATE {schema}.job SET heartbeat_on = now() - interval '1 hour' WHERE id = %s", [job.id])

    async def handler(job):
        pass

    async with Worker(QUEUE, handler, connection, native=native, recover_every=0.05) as worker:
        await eventually(lambda: worker.stats.completed == 1)

    told, _ = news(store, store.first_offset())
    lived = sorted(told, key=lambda one: one["at"])
    assert [one["kind"] for one in lived] == ["created", "active", "stalled", "active", "completed"]
    assert [json.loads(one["data"])["retry_count"] for one in lived[1:]] == [0, 0, 1, 1]


async def test_remembered_attempts_are_deleted_when_their_time_is_over(queue, connection, schema, sql):
    async def handler(job):
        raise ValueError("busy")

    def left():
        return sql.execute(f"SELECT count(*) AS rows FROM {schema}_jobwire.attempt").fetchall()

    native = PgBossWorker(remember_attempts=3600, maintenance_interval=0.05, monitor_interval=0.05)
    first, _ = await queue.add_many([NewJob(number, attempts=2, backoff=Backoff.fixed(600)) for number in range(2)])
    await work(connection, handler, 2, PgBossWorker(remember_attempts=3600, supervise=False))
    assert left() == [{"rows": 2}]
    sql.execute(f"UPDATE {schema}_jobwire.attempt SET keep_until = now() WHERE id = %s", [first.id])

    async with Worker(QUEUE, handler, connection, native=native):
        await eventually(lambda: left() == [{"rows": 1}])


async def test_a_retry_is_told_when_the_job_was_put_back(queue, connection, store):
    async def handler(job):
        raise ValueError("busy")

    job = await queue.add(1, attempts=3, backoff=Backoff.fixed(600))
    await work(connection, handler, 1)
    told, _ = news(store, store.first_offset())
    assert kinds(told, job.id) == ["created", "active", "retry"]
    [retry] = [one for one in told if one["kind"] == "retry"]
    assert retry["at"] == (await queue.get(job.id)).run_at - timedelta(seconds=600)
    assert json.loads(retry["data"])["error"] == "busy"
    assert json.loads(retry["data"])["estimated"] is False


async def test_nothing_new_leaves_the_offset_where_it_is(queue, store):
    assert store.latest_offset(store.first_offset(), None) == store.first_offset()
    await queue.add(1)
    _, end = news(store, store.first_offset())

    async def settled():
        nonlocal end
        before, end = end, store.latest_offset(end, None)
        return before == end

    # Transactions of other tests in the same database may be open for that long, and hold the offset back.
    await eventually(settled, within=120)
    await queue.add(2)
    assert store.latest_offset(end, None)["at"] > end["at"]


@pytest.fixture
def no_margin(monkeypatch):
    """What would hide for a second that open transactions are not looked for."""
    monkeypatch.setattr(events, "_MARGIN", 0)


@pytest.mark.usefixtures("no_margin")
async def test_a_transaction_left_open_across_an_ingest_is_told_in_the_next(queue, sql, url, store):
    await queue.add("before")
    with psycopg.connect(urls.parse(url).driver_url) as slow:
        slow.execute("SELECT 1")  # it begins here, and writes after the ingest
        await queue.add("beside")
        first, end = news(store, store.first_offset())
        assert len([one for one in first if one["kind"] == "created"]) == 2
        late = await queue.add("late")
        schema = urls.parse(url).options["schema"]
        [(late_id, at)] = slow.execute(
            f'INSERT INTO "{schema}".job (name, data) VALUES (%s, %s) RETURNING id::text, created_on', [QUEUE, '"slow"']
        ).fetchall()
        second, end = news(store, end)
        assert late_id not in {one["job_id"] for one in second}
        slow.commit()
    third, _ = news(store, end)
    [told] = [one for one in third if one["job_id"] == late_id]
    assert (told["kind"], told["at"]) == ("created", at)
    assert told["at"] < (await queue.get(late.id)).created_at
    everything = {one["id"] for one in first + second + third}
    assert len(everything) == 4


@pytest.mark.usefixtures("no_margin")
async def test_a_claim_inside_a_slow_transaction_is_told_though_it_has_ended_since(queue, sql, url, store, schema):
    job = await queue.add(1)
    with psycopg.connect(urls.parse(url).driver_url) as slow:
        slow.execute(f"""UPDATE "{schema}".job SET state = 'active', started_on = now()""")
        _, end = news(store, store.first_offset())
        slow.commit()
    sql.execute("UPDATE job SET state = 'completed', completed_on = now()")
    told, _ = news(store, end)
    assert kinds(told, job.id)[-2:] == ["active", "completed"]


async def test_a_prepared_transaction_is_waited_for(tmp_path):
    with embedded.postgres(tmp_path, durable=False) as server, psycopg.connect(server.url, autocommit=True) as setting:
        setting.execute("ALTER SYSTEM SET max_prepared_transactions = 5")
    with embedded.postgres(tmp_path, durable=False) as server:
        url = f"pgboss+{server.url}"
        async with connect(url) as connection, Queue(QUEUE, connection) as queue:
            before = await queue.add("before")
        store = opened(url, QUEUE)
        end = store.latest_offset(store.first_offset(), None)
        with psycopg.connect(server.url) as slow:
            slow.execute("INSERT INTO pgboss.job (name, data) VALUES (%s, '1')", [QUEUE])
            slow.execute("PREPARE TRANSACTION 'two-phase'")
            slow.rollback()
        low = end["from"]
        for _ in range(3):
            told, end = news(store, end)
            assert {one["job_id"] for one in told} <= {before.id}
            assert end["from"] == low
        with psycopg.connect(server.url, autocommit=True) as other:
            other.execute("COMMIT PREPARED 'two-phase'")
        told, end = news(store, end)
        assert len({one["job_id"] for one in told} - {before.id}) == 1
        assert end["from"] > low
        store.close()


async def test_a_user_who_may_not_see_other_sessions_reads_with_an_overlap(queue, sql, url, schema, unique):
    await queue.add(1)
    sql.execute(f"CREATE ROLE {unique} LOGIN PASSWORD 'reader'")
    sql.execute(f"GRANT USAGE ON SCHEMA {schema} TO {unique}")
    sql.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {unique}")
    try:
        limited = opened(url.replace(url.split("//")[1].split("@")[0], f"{unique}:reader"), QUEUE)
        with psycopg.connect(urls.parse(url).driver_url) as slow:
            slow.execute("SELECT 1")
            end = limited.latest_offset({**limited.first_offset(), "overlap": 5}, None)
            assert end["at"] - end["from"] == 5_000_000
        limited.close()
    finally:
        sql.execute(f"DROP OWNED BY {unique}; DROP ROLE {unique}")


async def test_a_bounded_ingest_goes_on_until_everything_is_told(queue, sql, store):
    jobs = await queue.add_many([NewJob(n) for n in range(300)])
    sql.execute("UPDATE job SET created_on = created_on - interval '1 hour' * (1 + (data::int % 10))")
    target = store.latest_offset(store.first_offset(), None)
    start, told, batches = store.first_offset(), [], 0
    while not store.passed(start, target):
        end = store.latest_offset(start, 90)
        assert end["at"] > start["at"]
        told += events_between(store, start, end)
        start, batches = end, batches + 1
    assert batches > 3
    assert {one["job_id"] for one in told} == {job.id for job in jobs}
    assert len(told) == len({one["id"] for one in told}) == 300


async def test_many_events_are_read_in_slices(queue, store, monkeypatch):
    monkeypatch.setattr(events, "_SLICE", 500)
    await queue.add_many([NewJob(n) for n in range(3_000)])
    first, end = store.first_offset(), store.latest_offset(store.first_offset(), None)
    parts = store.plan_events(first, end)
    assert len(parts) == 3
    assert len({one["id"] for one in events_between(store, first, end)}) == 3_000


@pytest.mark.parametrize("kind", ["created", "active"])
async def test_an_event_has_one_id_however_often_it_is_read(queue, connection, store, kind):
    started = []

    async def handler(job):
        started.append(job.id)
        raise ValueError("again")

    await queue.add(1, attempts=2)
    first, end = news(store, store.first_offset())
    await work(connection, handler, 2)
    second = events_between(store, store.first_offset(), store.latest_offset(end, None))
    ids = {one["id"] for one in first + second if one["kind"] == kind}
    assert len(ids) == 1, ids
