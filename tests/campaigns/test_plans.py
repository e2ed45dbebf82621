"""With 100,000 jobs, claiming and settling one of them touches a few rows: no scan of a table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobwire.campaigns import MessageTemplate, Outcome
from jobwire.campaigns.store.campaigns import NewCampaign

pytestmark = pytest.mark.slow

JOBS = 100_000


@pytest.fixture
async def campaign_id(connection, store):
    """A campaign of 100,000 queued jobs. The planner has no statistics, as just after a start."""
    await connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = false)")
    batch = await store.batches.add(connection, "big")
    template = await store.templates.add(connection, "hello", MessageTemplate("Hi"))
    await connection.execute(
        "INSERT INTO channels (id, username) SELECT 'c' || i, '@channel' || i FROM generate_series(1, %s) i", [JOBS]
    )
    await connection.execute("INSERT INTO batch_channels SELECT %s, id FROM channels", [batch.id])
    new = NewCampaign("big", batch.id, template.id, {}, "LIVE", 60, 3)
    campaign = await store.campaigns.add(connection, new)
    await store.campaigns.start(connection, campaign.id)
    assert await store.jobs.create(connection, campaign.id) == JOBS
    return campaign.id


def _nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


async def _on_jobs(connection, text, values, lock=None, table="jobs"):
    """The nodes of a statement's plan that read the table. The statement is run and rolled back."""
    async with connection.transaction(force_rollback=True):
        if lock is not None:
            await lock
        [[found]] = await (await connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", values)).fetchall()
    return [
        node for node in _nodes(found[0]["Plan"]) if node.get("Relation Name") == table and "Scan" in node["Node Type"]
    ]


async def test_claiming_settling_and_feeding_scan_no_table(connection, store, campaign_id):
    await _check(connection, store, campaign_id)
    await connection.execute("ANALYZE jobs")
    await connection.execute("ANALYZE channels")
    await _check(connection, store, campaign_id)


async def _reads(connection):
    """Scans of whole tables and rows read by index, also by triggers. May include earlier transactions."""
    found = await connection.execute(
        "SELECT relname, seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables "
        "WHERE relid IN ('jobs'::regclass, 'channels'::regclass)"
    )
    return {table: (scans, rows) for table, scans, rows in await found.fetchall()}


def _found_by(nodes, indexes):
    """The most rows that one of the nodes found, all of them by these indexes."""
    assert all(node["Node Type"] != "Seq Scan" for node in nodes)
    assert {node["Index Name"] for node in nodes if "Index Name" in node} <= indexes
    return max(node["Actual Rows"] for node in nodes)


async def _check(connection, store, campaign_id):
    async with connection.transaction():
        assert await store.sending.try_lock(connection, campaign_id)
        fed = await store.jobs.feed(connection, campaign_id, due_at=datetime.now(UTC), limit=7)
    jobs = sorted(fed, key=lambda job: job.job_id)
    async with connection.transaction():
        before = await _reads(connection)
        claims = [await store.jobs.claim(connection, job.job_id) for job in jobs[:6]]
        assert await store.jobs.sent(connection, claims[0])
        assert await store.jobs.failed(connection, claims[1], "no")
        assert await store.jobs.requeue(connection, claims[2], "no")
        assert await store.jobs.release(connection, claims[3])
        assert await store.jobs.failed_by_block(connection, claims[4], "blocked")
        assert await store.jobs.sweep(connection, 0) == []  # the last claim began after the transaction
        await store.channels.block(connection, claims[4].channel_id, "blocked")
        assert await store.sending.try_lock(connection, campaign_id)
        await store.jobs.feed(connection, campaign_id, due_at=datetime.now(UTC), limit=50)
        await store.jobs.count_fed(connection, campaign_id, limit=50)
        assert await store.jobs.unfeed_overdue(connection, 60) == []
        after = await _reads(connection)
        assert {table: scans - before[table][0] for table, (scans, _) in after.items()} == {"channels": 0, "jobs": 0}
        # Feeding 50 jobs reads each of them once, and their channels.
        rows = {table: found - before[table][1] for table, (_, found) in after.items()}
        assert max(rows.values()) < 300, rows
    claim = claims[5]
    assert claim is not None
    for outcome in Outcome:
        values = {
            "ids": [claim.job_id],
            "attempts": [1],
            "starts": [claim.started_at],
            "outcomes": [outcome.value],
            "errors": ["no"],
            "delays": [5.0],
            "most_errors": 5,
            "tested": [],
        }
        nodes = await _on_jobs(connection, store.jobs.text("settle"), values)
        assert _found_by(nodes, {"jobs_pkey"}) == 1, outcome
        if outcome is Outcome.SENT:
            nodes = await _on_jobs(connection, store.jobs.text("settle_sent"), values)
            assert _found_by(nodes, {"jobs_pkey"}) == 1
    nodes = await _on_jobs(connection, store.jobs.text("claim"), {"ids": [jobs[6].job_id], "held": 60})
    assert _found_by(nodes, {"jobs_pkey"}) == 1
    await store.jobs.sent(connection, claim)
    window = {"campaign_id": campaign_id, "due_at": datetime.now(UTC), "limit": 500}
    nodes = await _on_jobs(
        connection, store.jobs.text("feed"), window, lock=store.sending.try_lock(connection, campaign_id)
    )
    assert _found_by(nodes, {"jobs_of_campaign", "jobs_returned", "jobs_pkey"}) == 500
    await connection.execute("UPDATE campaign_feeding SET seen_id = fed_id, seen_at = seen_at - interval '1 hour'")
    look = {"campaign_id": campaign_id, "age": 60, "limit": 10}
    nodes = await _on_jobs(
        connection, store.jobs.text("check"), look, lock=store.sending.try_lock(connection, campaign_id)
    )
    assert _found_by(nodes, {"jobs_of_campaign", "jobs_pkey"}) <= 10


async def test_looking_at_failures_and_channels_in_trouble_is_bounded(connection, store, campaign_id):
    await connection.execute(
        "UPDATE jobs SET status = 'FAILED', failed_at = now(), error_message = 'NO: x' "
        "WHERE id IN (SELECT id FROM jobs LIMIT 20000)"
    )
    await connection.execute("UPDATE channels SET error_count = 1 WHERE id IN (SELECT id FROM channels LIMIT 20000)")
    for _ in range(2):
        values = {"campaign_id": campaign_id, "most": 100}
        nodes = await _on_jobs(
            connection, store.jobs.text("failure_reasons"), values, lock=store.jobs.walk_indexes(connection)
        )
        assert _found_by(nodes, {"jobs_with_errors"}) == 100
        values = {"batch_id": None, "active": True, "most": 100}
        nodes = await _on_jobs(connection, store.channels.text("troubled"), values, table="channels")
        assert _found_by(nodes, {"channels_troubled"}) <= 1000
        await connection.execute("ANALYZE jobs")
        await connection.execute("ANALYZE channels")
