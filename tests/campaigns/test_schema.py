"""The tables are created once, upgraded from any earlier version, and adopted from another application in place."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from campaigns.spec_database import BULL_JOB_ID, COUNTED, ILLEGAL, LEGAL, TABLES
from jobwire.campaigns import Adopted, NewerSchema, NotOurTable, connect, init
from jobwire.campaigns.schema.install import migrate, migrations
from jobwire.errors import InvalidOption, StoreRefused, StoreUnavailable

LAST = migrations()[-1][0]
CATALOG = """
    SELECT 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull::text,
        coalesce(pg_get_expr(d.adbin, d.adrelid), '')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = %(schema)s::text::regnamespace AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'r'
    UNION ALL SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated::text, ''
    FROM pg_constraint WHERE connamespace = %(schema)s::text::regnamespace
    UNION ALL SELECT 'index', tablename, indexname, indexdef, '', '' FROM pg_indexes WHERE schemaname = %(schema)s::text
    UNION ALL SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(t.oid), '', ''
    FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid
    WHERE c.relnamespace = %(schema)s::text::regnamespace AND NOT tgisinternal
    UNION ALL SELECT 'function', '', proname, prosrc, coalesce(proconfig::text, ''), ''
    FROM pg_proc WHERE pronamespace = %(schema)s::text::regnamespace
    ORDER BY 1, 2, 3, 4"""


async def _dump(connection: Any, schema: str) -> dict[str, list[Any]]:
    """Every row of every table with its system column xmin, which any write would change, and the catalog."""
    found = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", [schema])
    dump: dict[str, list[Any]] = {}
    for (table,) in await found.fetchall():
        rows = await connection.execute(f"SELECT xmin::text, t::text FROM {table} t ORDER BY 2")
        dump[table] = await rows.fetchall()
    dump["catalog"] = await (await connection.execute(CATALOG, {"schema": schema})).fetchall()
    return dump


async def _shape(connection: Any, schema: str) -> list[Any]:
    """The catalog without the schema's name, to compare two schemas."""
    rows = await (await connection.execute(CATALOG, {"schema": schema})).fetchall()
    return [tuple(value.replace(schema, "SCHEMA") for value in row) for row in rows]


async def _count(connection: Any) -> dict[str, int]:
    return {
        table: (await (await connection.execute(f"SELECT count(*) FROM {table}")).fetchone())[0] for table in COUNTED
    }


async def _one(connection: Any, query: str) -> Any:
    return await (await connection.execute(query)).fetchone()


async def test_a_second_run_changes_nothing(connection, unique):
    before = await _dump(connection, unique)
    assert before["catalog"]
    report = await init(connection, schema=unique)
    assert (report.version_before, report.version, report.adopted) == (LAST, LAST, ())
    assert "up to date" in str(report)
    assert await _dump(connection, unique) == before


@pytest.mark.parametrize("earlier", range(LAST))
async def test_every_earlier_version_leads_to_the_same_tables(bare, unique, earlier):
    await migrate(bare, unique, earlier)
    report = await init(bare, schema=unique)
    assert (report.version_before, report.version) == (earlier, LAST)
    stepwise = await _shape(bare, unique)
    other = f"{unique}_b"
    await init(bare, schema=other)
    await bare.execute(f"SET search_path TO {other}")
    try:
        assert stepwise == await _shape(bare, other)
    finally:
        await bare.execute("SET client_min_messages TO warning")
        await bare.execute(f"DROP SCHEMA {other} CASCADE")


async def test_messages_on_their_way_keep_their_places_when_the_cursors_come(bare, unique, store):
    await migrate(bare, unique, 5)
    await bare.execute("""
        INSERT INTO channels (id, username) SELECT 'c' || i, '@channel' || i FROM generate_series(1, 4) i;
        INSERT INTO campaigns (id, name, status, total_jobs) VALUES ('k', 'spring', 'RUNNING', 4);
        INSERT INTO jobs (id, campaign_id, channel_id, status, due_at, started_at) VALUES
            ('j1', 'k', 'c1', 'QUEUED', now(), NULL), ('j2', 'k', 'c2', 'QUEUED', NULL, NULL),
            ('j3', 'k', 'c3', 'SENDING', NULL, now() - interval '1 hour'), ('j4', 'k', 'c4', 'SENT', NULL, now());""")
    await init(bare, schema=unique)
    assert [one.job_id for one in await store.jobs.sweep(bare, 60)] == ["j3"]
    assert await store.jobs.count_fed(bare, "k", 10) == 1
    fed = await store.jobs.feed(bare, "k", due_at=datetime.now(UTC), limit=10)
    assert [one.job_id for one in fed] == ["j3", "j2"]


async def test_retry_limits_and_messages_of_earlier_releases_are_brought_within_the_rules(bare, unique, store):
    await migrate(bare, unique, 7)
    await bare.execute("""
        INSERT INTO channels (id, username) SELECT 'c' || i, '@channel' || i FROM generate_series(1, 2) i;
        INSERT INTO campaigns (id, name, status, retry_limit, total_jobs) VALUES ('k', 'k', 'RUNNING', 2147483647, 2);
        INSERT INTO jobs (id, campaign_id, channel_id, status, error_message) VALUES
            ('j1', 'k', 'c1', 'QUEUED', NULL), ('j2', 'k', 'c2', 'FAILED', '');""")
    report = await init(bare, schema=unique)
    assert {one.found: one.count for one in report.adopted} == {
        "campaigns with a retry limit above 1,000": 1,
        "jobs that had failed with an empty message": 1,
    }
    assert await _one(bare, "SELECT retry_limit FROM campaigns") == (1000,)
    assert await _one(bare, "SELECT error_message FROM jobs WHERE id = 'j2'") == ("unknown (adopted)",)
    assert await store.jobs.claim(bare, "j1") is not None  # the limit and one were beyond an integer
    with pytest.raises(Exception, match="can't be lowered after its start"):
        await bare.execute("UPDATE campaigns SET retry_limit = 1")


async def test_a_missing_schema_is_created_and_the_session_stays_as_it_was(bare, unique):
    other = f"{unique}_new"
    await bare.execute("SET search_path TO public; SET lock_timeout TO '3s'")
    async with bare.transaction():
        await init(bare, schema=other)
        assert await _one(bare, "SHOW search_path") == ("public",)
        assert await _one(bare, "SHOW lock_timeout") == ("3s",)
    assert await _one(bare, f"SELECT count(*) FROM {other}.jobs") == (0,)
    await bare.execute(f"SET client_min_messages TO warning; DROP SCHEMA {other} CASCADE")


async def test_of_several_runs_at_once_each_migration_is_run_by_one(open_connection, bare, unique):
    await bare.execute(TABLES + LEGAL + ILLEGAL)
    connections = [await open_connection() for _ in range(4)]
    reports = await asyncio.gather(*(init(one, schema=unique) for one in connections))
    kinds = [adopted.found for report in reports for adopted in report.adopted]
    assert kinds
    assert len(kinds) == len(set(kinds))
    assert {report.version for report in reports} == {LAST}


async def test_a_migration_that_fails_leaves_nothing_of_itself(bare, unique, monkeypatch):
    from jobwire.campaigns.schema import install

    broken = (*migrations()[:1], (2, migrations()[1][1] + "\nSELECT 1 / 0;"))
    monkeypatch.setattr(install, "migrations", lambda: broken)
    with pytest.raises(Exception, match="division by zero"):
        await init(bare, schema=unique)
    assert await _one(bare, "SELECT version FROM jobwire_campaigns_version") == (1,)
    assert await _one(bare, "SELECT count(*) FROM pg_indexes WHERE indexname = 'jobs_unfed' AND schemaname = "
                            f"'{unique}'") == (0,)  # fmt: skip
    monkeypatch.undo()
    assert (await init(bare, schema=unique)).version == LAST


async def test_tables_of_a_newer_release_are_refused(connection, unique):
    await connection.execute("UPDATE jobwire_campaigns_version SET version = 999")
    with pytest.raises(NewerSchema, match=f"version 999; this jobwire supports up to {LAST}"):
        await init(connection, schema=unique)


@pytest.mark.parametrize(
    ("existing", "words"),
    [
        ("CREATE TABLE jobs (id text PRIMARY KEY, title text)", "table jobs in schema .* has no column campaign_id"),
        ("CREATE TABLE users (id bigint PRIMARY KEY)", "column id of table users in schema .* is of type bigint"),
        ("CREATE VIEW users AS SELECT '1' AS id", "users in schema .* is not a table"),
    ],
)
async def test_tables_of_something_else_are_refused_and_left_alone(bare, unique, existing, words):
    await bare.execute(existing)
    before = await _dump(bare, unique)
    with pytest.raises(NotOurTable, match=words):
        await init(bare, schema=unique)
    assert await _dump(bare, unique) == before


async def test_a_table_that_stays_in_use_is_reported(bare, unique, open_connection, monkeypatch):
    from jobwire.campaigns.schema import install

    monkeypatch.setattr(install, "_LOCK_WAIT", "50ms")
    await bare.execute(TABLES)
    other = await open_connection()
    async with other.transaction():
        await other.execute(f"LOCK TABLE {unique}.jobs")
        with pytest.raises(StoreUnavailable, match="in use for longer"):
            await init(bare, schema=unique)
    assert (await init(bare, schema=unique)).version == LAST


@pytest.mark.parametrize("schema", ["", "x" * 64, "pg_mine", "a\0b", None])
async def test_a_schema_that_postgresql_would_not_take_is_refused(bare, schema):
    with pytest.raises(InvalidOption, match="schema"):
        await init(bare, schema=schema)


async def test_a_schema_may_have_any_other_name(bare):
    odd = 'Odd "name" ' + "é%{}"
    await init(bare, schema=odd)
    from psycopg import sql

    from jobwire.campaigns import Store

    assert (await Store(odd).users.add(bare, "ann")).username == "ann"
    await bare.execute("SET client_min_messages TO warning")
    await bare.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(odd)))


@pytest.mark.parametrize("bull_job_id", [True, False])
async def test_legal_rows_of_the_application_are_adopted_unchanged(bare, unique, bull_job_id):
    await bare.execute(TABLES + LEGAL)
    columns = {
        "jobs": "id, campaign_id, channel_id, status, attempts, error_message, created_at, started_at, sent_at, "
        "failed_at",
        "channels": "id, username, category, is_active, error_count, last_error, created_at, updated_at",
        "campaigns": "id, name, batch_id, template_id, params, mode, delivery_rate, retry_limit, status, progress, "
        "total_jobs, created_at, updated_at, started_at, completed_at, created_by_id",
        "templates": "id, name, content, media_type, media_url",
    }  # fmt: skip
    read = {table: f"SELECT {listed} FROM {table} ORDER BY id" for table, listed in columns.items()}
    before = {table: await (await bare.execute(query)).fetchall() for table, query in read.items()}
    if bull_job_id:
        await bare.execute(BULL_JOB_ID)
        await bare.execute("""UPDATE jobs SET "bullJobId" = '77'""")
    report = await init(bare, schema=unique)
    assert report.adopted == ()
    assert {table: await (await bare.execute(query)).fetchall() for table, query in read.items()} == before
    counters = await (await bare.execute("SELECT id, sent, failed, total_jobs FROM campaigns ORDER BY id")).fetchall()
    assert counters == [
        ("cancelled", 0, 0, 0), ("completed", 3, 0, 3), ("failed", 0, 0, 0), ("paused", 0, 0, 1), ("queued", 0, 0, 0),
        ("running", 1, 1, 4),
    ]  # fmt: skip
    old = await _one(bare, "SELECT count(*) FROM information_schema.columns WHERE column_name = 'bullJobId' "
                           f"AND table_schema = '{unique}'")  # fmt: skip
    assert old == (0,)


async def test_rows_that_break_rules_are_brought_to_the_nearest_legal_value_and_reported(bare, unique):
    await bare.execute(TABLES + LEGAL + ILLEGAL)
    counted = await _count(bare)
    report = await init(bare, schema=unique)
    assert await _count(bare) == counted
    assert (
        Adopted(1, "jobs that had failed without a message", "their message is 'unknown (adopted)'") in report.adopted
    )
    assert {one.found: one.count for one in report.adopted} == {
        "users without a name": 1,
        "batches without a name": 1,
        "templates without a name": 1,
        "campaigns without a name": 1,
        "templates without content": 1,
        "templates with a media type and no URL": 1,
        "templates with a media URL and no known type": 1,
        "channels with an error count missing or below 0": 2,
        "channels neither active nor inactive": 1,
        "channels active after five errors or more": 1,
        "channels with a username written in another way": 1,
        "channels without a username": 1,
        "active channels whose username is not one": 2,
        "active channels with the username of an older one": 1,
        "repeated listings of a channel in a batch": 1,
        "campaigns with an unknown status": 1,
        "campaigns with an unknown mode": 1,
        "campaigns with a delivery rate missing or below 1": 2,
        "campaigns with a retry limit missing or below 0": 2,
        "campaigns with a number of jobs missing or below 0": 2,
        "campaigns with progress missing or beyond 0 to 100": 2,
        "jobs with an unknown status": 1,
        "jobs that had failed without a message": 1,
        "jobs both sent and failed": 1,
        "jobs with attempts missing or below 0": 2,
        "jobs with more attempts than their campaign allows": 1,
        "second jobs of a campaign for the same channel": 1,
        "campaigns with a wrong number of jobs": 1,
        "open campaigns whose jobs had all finished": 1,
        "campaigns with progress other than that of their jobs": 3,
    }
    jobs = await bare.execute(
        "SELECT id, status, attempts, error_message, sent_at IS NOT NULL, failed_at IS NOT NULL, duplicate_of "
        "FROM jobs WHERE id LIKE 'z%' ORDER BY id"
    )
    assert await jobs.fetchall() == [
        ("z1", "FAILED", 1, "unknown (adopted)", False, True, None),
        ("z2", "SENT", 1, None, True, False, None),
        ("z3", "QUEUED", 1, None, False, False, None),
        ("z4", "QUEUED", 0, None, False, False, None),
        ("z5", "FAILED", 0, "unknown status LOST (adopted)", False, False, None),
        ("z6", "SENT", 1, None, True, False, None),
        ("z7", "FAILED", 0, "duplicate of job z6 (adopted)", False, False, "z6"),
        ("z8", "SENT", 1, None, True, False, None),
        ("z9", "FAILED", 1, "no", False, True, None),
    ]
    campaigns = await bare.execute(
        "SELECT id, name, mode, delivery_rate, retry_limit, status, progress, total_jobs, sent, failed, error "
        "FROM campaigns WHERE id LIKE 'y%' ORDER BY id"
    )
    assert await campaigns.fetchall() == [
        ("y1", "y1", "LIVE", 1, 0, "RUNNING", 71, 7, 2, 3, None),
        ("y2", "odd", "TEST", 20, 3, "FAILED", 0, 0, 0, 0, "unknown status ARCHIVED (adopted)"),
        ("y3", "all done", "LIVE", 20, 3, "COMPLETED", 100, 2, 1, 1, None),
    ]
    channels = await bare.execute(
        "SELECT id, username, is_active, error_count FROM channels WHERE id LIKE 'x%' ORDER BY 1"
    )
    assert await channels.fetchall() == [
        ("x1", "@tired", False, 7), ("x2", "@negative", True, 0), ("x3", "@neither", False, 0),
        ("x4", "@linked", True, 0),
        ("x5", "not a name", False, 0), ("x6", "@twice", True, 0), ("x7", "@Twice", False, 0), ("x8", "(x8)", False, 0),
    ]  # fmt: skip
    templates = await bare.execute(
        "SELECT name, content, media_type, media_url FROM templates WHERE id > 't2' ORDER BY id"
    )
    assert await templates.fetchall() == [("t3", "", None, None), ("gif", "x", "DOCUMENT", "https://example.com/a.gif")]
    before = await _dump(bare, unique)
    assert (await init(bare, schema=unique)).adopted == ()
    assert await _dump(bare, unique) == before


async def test_usernames_that_an_application_keeps_unique_are_adopted(bare, unique):
    await bare.execute(
        TABLES
        + """ALTER TABLE channels ADD UNIQUE (username);
        INSERT INTO channels (id, username, created_at) VALUES ('a', '@news', '2025-01-02'),
            ('b', 'News', '2025-01-01'), ('c', 't.me/shop', '2025-01-02'),
            ('d', 'shop', '2025-01-01'), ('e', NULL, now()), ('f', NULL, now())"""
    )
    report = await init(bare, schema=unique)
    channels = await bare.execute("SELECT id, username, is_active FROM channels ORDER BY id")
    assert await channels.fetchall() == [
        ("a", "@news", True), ("b", "News", False), ("c", "t.me/shop", False), ("d", "@shop", True),
        ("e", "(e)", False), ("f", "(f)", False),
    ]  # fmt: skip
    assert {one.found: one.count for one in report.adopted} == {
        "channels with a username written in another way": 1,
        "channels without a username": 2,
        "active channels whose username is not one": 4,
    }


async def test_times_that_an_application_sets_itself_have_a_default(bare, unique):
    await bare.execute(
        TABLES
        + """ALTER TABLE templates ADD "updatedAt" timestamp(3) NOT NULL;
        ALTER TABLE batches ADD updated_at timestamptz NOT NULL"""
    )
    await init(bare, schema=unique)
    await bare.execute("SET timezone TO 'Asia/Tokyo'")
    await bare.execute("INSERT INTO templates (id, name, content) VALUES ('t', 'x', 'y')")
    await bare.execute("INSERT INTO batches (id, name) VALUES ('b', 'x')")
    query = """SELECT "updatedAt" - created_at AT TIME ZONE 'UTC' < '1s' FROM templates"""
    assert await _one(bare, query) == (True,)
    assert await _one(bare, "SELECT updated_at = created_at FROM batches") == (True,)


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ('CREATE VIEW old AS SELECT "bullJobId" FROM jobs', "view old depends on column bullJobId"),
        (
            "ALTER TABLE campaigns ALTER params TYPE text; UPDATE campaigns SET params = ''",
            "invalid input .* type json",
        ),
        ("CREATE INDEX channels_username ON channels (category)", '"channels_username" already exists'),
    ],
)
async def test_what_can_not_be_adopted_is_refused_with_the_reason(bare, unique, odd, words):
    await bare.execute(TABLES + BULL_JOB_ID + ";" + LEGAL + odd)
    with pytest.raises(StoreRefused, match=f"the tables in schema '{unique}' stay at version .: .*{words}"):
        await init(bare, schema=unique)


async def test_the_names_and_types_of_an_orm_are_adopted(bare, unique):
    await bare.execute("""
        CREATE TYPE "JobStatus" AS ENUM ('QUEUED', 'SENDING', 'SENT', 'FAILED');
        CREATE TABLE users (id text PRIMARY KEY, username text);
        CREATE TABLE batches (id text PRIMARY KEY, name text);
        CREATE TABLE templates (id text PRIMARY KEY, content text, "mediaType" text, "mediaUrl" text);
        CREATE TABLE channels (id varchar(30) PRIMARY KEY, username varchar(64), "isActive" boolean, "errorCount" int);
        CREATE TABLE campaigns (id text PRIMARY KEY, name text, status text, "deliveryRate" smallint, params json);
        CREATE TABLE jobs (id text PRIMARY KEY, "campaignId" text NOT NULL REFERENCES campaigns (id),
            "channelId" varchar(30) NOT NULL REFERENCES channels (id), status "JobStatus" DEFAULT 'QUEUED',
            "sentAt" timestamp(3), "bullJobId" text);
        INSERT INTO channels VALUES ('c', '@name', true, 2);
        INSERT INTO campaigns VALUES ('a', 'first', 'RUNNING', 7, '{"x": 1}');
        INSERT INTO jobs VALUES ('j', 'a', 'c', 'SENT', '2025-01-01 12:00');""")
    await init(bare, schema=unique)
    job = await _one(
        bare, "SELECT campaign_id, channel_id, status, sent_at AT TIME ZONE 'UTC' = '2025-01-01 12:00' FROM jobs"
    )
    assert job == ("a", "c", "SENT", True)
    assert await _one(bare, "SELECT error_count FROM channels") == (2,)
    assert await _one(bare, "SELECT delivery_rate, params, status FROM campaigns") == (7, {"x": 1}, "COMPLETED")
    await bare.execute("DELETE FROM campaigns")  # the reference that did not cascade was replaced
    assert await _one(bare, "SELECT count(*) FROM jobs") == (0,)


async def test_rows_that_refer_to_nothing_are_kept_and_reported(bare, unique):
    await bare.execute(TABLES + "ALTER TABLE jobs DROP CONSTRAINT jobs_channel_id_fkey;" + LEGAL)
    await bare.execute("DELETE FROM batch_channels; DELETE FROM channels WHERE id = 'ch2'")
    report = await init(bare, schema=unique)
    assert [str(one) for one in report.adopted] == [
        "rows of jobs whose channel_id refers to nothing: 1; they are kept as they are"
    ]
    assert await _one(bare, "SELECT count(*) FROM jobs WHERE channel_id = 'ch2'") == (1,)
    with pytest.raises(Exception, match="jobs_channel_id_fkey"):
        await bare.execute("INSERT INTO jobs (id, campaign_id, channel_id) VALUES ('new', 'queued', 'missing')")


async def test_public_is_the_schema_if_none_is_named(jobwire_postgres, unique):
    async with await connect(jobwire_postgres.url) as connection:
        await connection.execute(f"CREATE DATABASE {unique}")
        url = jobwire_postgres.url.rsplit("/", 1)
        own = f"{url[0]}/{unique}" + (f"?{url[1].partition('?')[2]}" if "?" in url[1] else "")
        async with await connect(own) as own_connection:
            assert (await init(own_connection)).schema == "public"
            assert await _one(own_connection, "SELECT count(*) FROM public.campaigns") == (0,)
        await connection.execute(f"DROP DATABASE {unique}")
