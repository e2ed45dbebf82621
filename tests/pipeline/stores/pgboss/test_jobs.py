"""pg-boss jobs as rows, beside what the backend says of the same jobs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from awaiting import eventually
from jobwire import InvalidOption, State, Worker, codec, urls
from jobwire.backends.pgboss import Boss
from jobwire.errors import StoreRefused, StoreUnavailable
from jobwire.options import NewJob
from jobwire.pipeline.lake.schemas import JOBS
from jobwire.pipeline.stores.batches import BATCH_BYTES
from jobwire.pipeline.stores.boundary import Wanted, list_queues
from jobwire.pipeline.stores.postgresio import arrow
from pipeline.stores.reading import everything, jobs_in, mixed_outcomes, opened, sizes

from .conftest import QUEUE

TEXTS = ['naïve, "quoted": {x}', "line\nbreak, \r\n", "", "🚀 🚀", "a\\b\\n"]


def as_row(job):
    return {
        "queue": QUEUE, "name": QUEUE, "state": job.state.value, "native_state": job.native_state,
        "priority": job.priority, "attempts": job.attempts, "attempts_made": job.attempts_made,
        "payload": orjson.loads(codec.dumps(job.data)), "error": job.error, "result": job.result,
        "stacktrace": job.stacktrace[0] if job.stacktrace else None, "progress": job.progress,
        "created_at": job.created_at, "run_at": job.run_at, "started_at": job.started_at,
        "finished_at": job.finished_at, "malformed": None,
    }  # fmt: skip


def as_read(row):
    values = {name: row[name] for name in JOBS.names if name in _COMPARED}
    for name in ("payload", "result", "progress"):
        values[name] = None if row[name] is None else orjson.loads(row[name])
    return values


_COMPARED = frozenset({
    "queue", "name", "state", "native_state", "priority", "attempts", "attempts_made", "payload", "error", "result",
    "stacktrace", "progress", "created_at", "run_at", "started_at", "finished_at", "malformed",
})  # fmt: skip


@pytest.mark.slow
async def test_ten_thousand_mixed_jobs_are_read_as_the_backend_says(queue, connection, store, capsys):
    far = datetime.now(UTC) + timedelta(days=3)
    worked = [NewJob({"n": n, "t": TEXTS[n % 5], "x": [1.5, None]}, priority=n % 3, attempts=2) for n in range(2_000)]
    later = [NewJob([n, TEXTS[n % 5]], run_at=far) for n in range(3_000)]
    await queue.add_many(worked)
    async with Worker(QUEUE, mixed_outcomes, connection, concurrency=50) as worker:
        await eventually(lambda: worker.stats.completed + worker.stats.failed > 1_200, within=60)
    added = await queue.add_many(later)
    await connection.backend.cancels.cancel(QUEUE, [job.id for job in added[:500]])
    await queue.add_many([NewJob(n, priority=-n) for n in range(5_000)])

    expected = {key: as_row(job) for key, job in (await everything(queue)).items()}
    found = jobs_in(store, parts=8)
    began = time.perf_counter()
    assert sum(sizes(store, 8)) == len(found)
    took = time.perf_counter() - began
    states = Counter(row["state"] for row in found.values())
    with capsys.disabled():
        print(f"\npg-boss: {len(found)} jobs, {len(found) / took:,.0f} rows/s; {dict(states)}")
    assert len(found) == 10_000
    assert {"waiting", "delayed", "completed", "failed", "cancelled"} <= set(states)
    seen = {key: as_read(row) for key, row in found.items()}
    wrong = [(seen.get(key), row) for key, row in expected.items() if seen.get(key) != row]
    assert not wrong, wrong[0]
    assert {row["store"] for row in found.values()} == {"the-store"}


async def test_payloads_are_written_as_the_codec_writes_them(queue, store):
    values = [
        {"b": [1, 2], "a": {"x": None}},
        'a: b, "c": d',
        1.5,
        [2**53 - 1, 1e21, 0.1],
        {},
        [],
        True,
        None,
        {"k, l": 1},
    ]
    jobs = await queue.add_many([NewJob(value) for value in values])
    found = jobs_in(store)
    assert [found[job.id]["payload"] for job in jobs] == [
        '{"a":{"x":null},"b":[1,2]}',
        codec.dumps('a: b, "c": d').decode(),
        "1.5",
        "[9007199254740991,1000000000000000000000,0.1]",
        "{}",
        "[]",
        "true",
        "null",
        '{"k, l":1}',
    ]


async def test_a_number_that_no_double_holds_keeps_its_digits(queue, store, sql):
    job = await queue.add(1)
    sql.execute("""UPDATE job SET data = '{"n": 123456789012345678901234567890, "m": 1}'""")
    assert jobs_in(store)[job.id]["payload"] == '{"m":1,"n":123456789012345678901234567890}'


async def test_slices_are_balanced_whatever_the_ids_are(queue, store, sql):
    await queue.add_many([NewJob(n) for n in range(4_000)])  # ids that grow with time
    counts = sizes(store, 4)
    assert len(counts) == 4
    assert max(counts) <= 1.2 * min(counts), counts


@pytest.mark.slow
async def test_slices_of_a_large_table_are_balanced_from_a_sample(queue, store, sql):
    await queue.add(1)
    sql.execute(
        """
        INSERT INTO job_common (id, name, data)
        SELECT ('0190' || lpad(to_hex(n), 8, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid, %s,
            jsonb_build_object('t', repeat('x', 500))
        FROM generate_series(1, 40000) n
        """,
        [QUEUE],
    )
    sql.execute("SELECT create_queue('small', '{\"policy\": \"standard\"}')")
    sql.execute("INSERT INTO job_common (name, data) SELECT 'small', to_jsonb(n) FROM generate_series(1, 2500) n")
    assert sql.execute("SELECT pg_relation_size('job_common') / 8192 AS n").fetchone()["n"] > 2_000
    counts = sizes(store, 8)
    assert len(counts) == 8
    assert sum(counts) == 40_001
    assert max(counts) <= 1.6 * 5_000, counts
    small = opened_beside(store, "small")
    counts = sizes(small, 8)
    assert sum(counts) == 2_500
    assert 1 <= len(counts) <= 4


def opened_beside(store, queue):
    from jobwire.pipeline.stores.pgboss.store import PgBossStore

    return PgBossStore(store._database, queue, "the-store")


async def test_only_what_is_wanted_is_read(queue, connection, store, sql):
    jobs = await queue.add_many([NewJob(n) for n in range(6)])
    ids = [job.id for job in jobs]
    await connection.backend.cancels.cancel(QUEUE, ids[:2])
    old, new = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    sql.execute(
        "UPDATE job SET created_on = %s, completed_on = completed_on - interval '1 year' WHERE id = %s", [old, ids[0]]
    )

    def read(**wanted):
        return sorted(ids.index(key) for key in jobs_in(store, Wanted(**wanted)))

    assert read() == [0, 1, 2, 3, 4, 5]
    assert read(states=frozenset([State.CANCELLED])) == [0, 1]
    assert read(states=frozenset([State.WAITING])) == [2, 3, 4, 5]
    assert read(states=frozenset()) == []
    assert read(created_before=new) == [0]
    assert read(created_from=new) == [1, 2, 3, 4, 5]
    month = datetime.now(UTC) - timedelta(days=30)
    assert read(finished_from=month) == [1, 2, 3, 4, 5]
    assert read(finished_before=month) == [0, 2, 3, 4, 5]
    assert read(states=frozenset([State.CANCELLED]), finished_before=month) == [0]
    assert read(names=frozenset(["other"])) == []
    assert read(names=frozenset([QUEUE, "other"])) == [0, 1, 2, 3, 4, 5]


async def test_a_partitioned_queue_is_read_from_its_own_table(connection, url):
    boss = Boss(connection)
    await boss.create_queue("own", partition=True)
    sent = [await boss.send("own", {"n": n}) for n in range(3)]
    store = opened(url, "own")
    assert set(jobs_in(store)) == {one.id for one in sent}
    store.close()


async def test_the_oldest_schema_is_read_too(queue, sql, url):
    job = await queue.add({"n": 1})
    newer = (
        "group_id group_tier heartbeat_on heartbeat_seconds blocked blocking pending_dependencies source_name "
        "source_id source_created_on source_retry_count source_output source_root_id trace_context upsert_by_key"
    )
    for column in newer.split():
        sql.execute(f"ALTER TABLE job DROP COLUMN {column} CASCADE")
    sql.execute("UPDATE version SET version = 26")
    store = opened(url, QUEUE)
    row = jobs_in(store)[job.id]
    assert (row["state"], row["payload"]) == ("waiting", '{"n":1}')
    assert "blocked" not in orjson.loads(row["raw"])
    assert store.latest_offset(store.first_offset(), None) != store.first_offset()
    store.close()


async def test_every_other_column_is_kept_known_or_not(queue, sql, url):
    job = await queue.add(1, attempts=4, extra={"group": {"id": "g"}})
    sql.execute("""ALTER TABLE job ADD COLUMN "tenant's ""name" jsonb, ADD COLUMN since date""")
    sql.execute("""UPDATE job SET "tenant's ""name" = '{"a": [1, 2]}', since = '2026-01-31'""")
    store = opened(url, QUEUE)
    raw = orjson.loads(jobs_in(store)[job.id]["raw"])
    store.close()
    assert raw["tenant's \"name"] == {"a": [1, 2]}
    assert raw["since"] == "2026-01-31"
    assert (raw["retry_limit"], raw["group_id"], raw["policy"]) == (3, "g", "standard")
    assert not {"id", "data", "state", "created_on"} & set(raw)


async def test_rows_that_are_no_jobs_are_told_apart_with_the_reason(queue, store, sql):
    jobs = await queue.add_many([NewJob(n) for n in range(4)])
    ids = [job.id for job in jobs]
    sql.execute("ALTER TYPE job_state ADD VALUE 'archived'")
    sql.execute("UPDATE job SET start_after = 'infinity' WHERE id = %s", [ids[0]])
    sql.execute("UPDATE job SET created_on = '20000-01-01', keep_until = '-infinity' WHERE id = %s", [ids[1]])
    sql.execute("UPDATE job SET state = 'archived', retry_limit = 2147483647 WHERE id = %s", [ids[2]])
    found = jobs_in(store)
    reasons = [found[key]["malformed"] for key in ids]
    assert reasons == [
        "start_after is infinity, not a date",
        "created_on is 20000-01-01 00:00:00+00, not a date",
        "unknown state archived",
        None,
    ]
    assert found[ids[0]]["run_at"] is None
    assert found[ids[2]]["state"] is None


def by_copy(store):
    """Have the store read as if ADBC were not installed."""
    store._database._arrow.close()
    store._database._arrow = arrow.CopySource(store._database._connection)


async def test_both_ways_to_arrow_read_the_same(queue, connection, store, sql):
    await queue.add_many([NewJob({"t": text}, extra={"singletonKey": text}) for text in [*TEXTS, "\\N", '"', ","]])
    sql.execute('UPDATE job SET output = \'{"message": "", "stack": ""}\', state = \'failed\' WHERE priority = 0')
    by_adbc = jobs_in(store)
    assert isinstance(store._database._arrow, arrow.AdbcSource)
    by_copy(store)
    assert jobs_in(store) == by_adbc
    assert {row["unique_key"] for row in by_adbc.values()} == {*TEXTS, "\\N", '"', ","}
    assert {row["error"] for row in by_adbc.values()} == {""}


async def test_without_adbc_jobs_are_read_by_copy(queue, url, monkeypatch):
    job = await queue.add({"n": 1})
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    arrow._database.cache_clear()
    store = opened(url, QUEUE)
    assert jobs_in(store)[job.id]["payload"] == '{"n":1}'
    assert isinstance(store._database._arrow, arrow.CopySource)
    store.close()


@pytest.mark.slow
async def test_large_jobs_come_in_small_batches(queue, store):
    await queue.add_many([NewJob("x" * 4_000_000, extra={"retryLimit": n}) for n in range(20)])
    [part] = store.plan_jobs(Wanted(), 4)
    for source in ("adbc", "copy"):
        if source == "copy":
            by_copy(store)
        batches = list(store.read_jobs(part, Wanted()))
        assert sum(batch.num_rows for batch in batches) == 20
        assert max(batch.nbytes for batch in batches) <= 1.5 * BATCH_BYTES, source


async def test_queues_are_listed_without_pg_boss_s_own(queue, sql, url):
    for name in ("zebra", "__pgboss__send-it", "Apple"):
        sql.execute('SELECT create_queue(%s, \'{"policy": "standard"}\')', [name])
    assert list_queues(urls.parse(url)) == ["Apple", QUEUE, "zebra"]


async def test_what_is_missing_is_named(queue, url):
    store = opened(url, "nowhere")
    with pytest.raises(StoreRefused, match="queue 'nowhere' does not exist in schema"):
        store.plan_jobs(Wanted(), 1)
    store.close()
    with pytest.raises(StoreRefused, match="has no schema elsewhere of pg-boss"):
        opened(url.replace("schema=", "schema=elsewhere&x=").partition("&x=")[0], QUEUE)


def test_a_server_that_is_not_there_is_unavailable():
    with pytest.raises(StoreUnavailable, match=r"PostgreSQL at pgboss\+postgresql://u:\*\*\*@127.0.0.1:9"):
        opened("pgboss+postgresql://u:secret@127.0.0.1:9/x?connect_timeout=2", QUEUE)


def test_an_option_that_is_none_of_postgresql_s_is_refused():
    with pytest.raises(InvalidOption):
        opened("pgboss+postgresql://127.0.0.1:9/x?prefix=y", QUEUE)
