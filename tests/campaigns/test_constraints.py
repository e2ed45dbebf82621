"""Every rule of the data holds in the database itself, whichever program writes."""

from __future__ import annotations

import psycopg
import pytest

ROWS = """
    INSERT INTO users (id, username) VALUES ('u', 'ann');
    INSERT INTO batches (id, name) VALUES ('b', 'news');
    INSERT INTO templates (id, name, content) VALUES ('t', 'hello', 'Hi');
    INSERT INTO channels (id, username) VALUES ('c', '@name'), ('d', '@other');
    INSERT INTO batch_channels (batch_id, channel_id) VALUES ('b', 'c');
    INSERT INTO campaigns (id, name, batch_id, template_id, created_by_id, retry_limit, status)
    VALUES ('k', 'spring', 'b', 't', 'u', 2, 'RUNNING');
    INSERT INTO jobs (id, campaign_id, channel_id) VALUES ('j', 'k', 'c');"""


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("UPDATE campaigns SET status = 'STOPPED'", "campaigns_status_known"),
        ("UPDATE campaigns SET status = NULL", "status"),
        ("UPDATE campaigns SET mode = 'DRY'", "campaigns_mode_known"),
        ("UPDATE campaigns SET progress = 101", "campaigns_progress_range"),
        ("UPDATE campaigns SET progress = -1", "campaigns_progress_range"),
        ("UPDATE campaigns SET progress = NULL", "progress"),
        ("UPDATE campaigns SET delivery_rate = 0", "campaigns_delivery_rate_range"),
        (
            "UPDATE campaigns SET status = 'QUEUED'; UPDATE campaigns SET retry_limit = -1",
            "campaigns_retry_limit_range",
        ),
        ("UPDATE campaigns SET retry_limit = 1", "campaigns_retry_limit_kept"),
        ("UPDATE campaigns SET total_jobs = -1", "campaigns_total_jobs_range"),
        ("UPDATE campaigns SET sent = -1", "campaigns_sent_range"),
        ("UPDATE campaigns SET failed = -1", "campaigns_failed_range"),
        ("UPDATE campaigns SET name = ''", "campaigns_name_given"),
        ("UPDATE campaigns SET batch_id = 'none'", "campaigns_batch_id_fkey"),
        ("UPDATE campaigns SET template_id = 'none'", "campaigns_template_id_fkey"),
        ("UPDATE campaigns SET created_by_id = 'none'", "campaigns_created_by_id_fkey"),
        ("UPDATE jobs SET status = 'LOST'", "jobs_status_known"),
        ("UPDATE jobs SET attempts = -1", "jobs_attempts_range"),
        ("UPDATE jobs SET attempts = 4", "jobs_attempts_allowed"),
        ("INSERT INTO jobs (id, campaign_id, channel_id, attempts) VALUES ('n', 'k', 'd', 4)", "jobs_attempts_allowed"),
        ("UPDATE jobs SET status = 'FAILED'", "jobs_failed_with_message"),
        ("UPDATE jobs SET sent_at = now(), failed_at = now()", "jobs_sent_or_failed"),
        ("UPDATE jobs SET duplicate_of = 'x'", "jobs_duplicate_settled"),
        ("UPDATE jobs SET channel_id = 'none'", "jobs_channel_id_fkey"),
        ("INSERT INTO jobs (id, campaign_id, channel_id) VALUES ('n', 'k', 'c')", "jobs_campaign_channel"),
        ("INSERT INTO jobs (id, campaign_id, channel_id) VALUES ('n', 'none', 'c')", "jobs_campaign_id_fkey"),
        ("UPDATE channels SET error_count = 5 WHERE id = 'c'", "channels_inactive_after_errors"),
        ("UPDATE channels SET error_count = -1 WHERE id = 'c'", "channels_error_count_range"),
        ("UPDATE channels SET username = 'name' WHERE id = 'c'", "channels_username_shape"),
        ("UPDATE channels SET username = '@1name' WHERE id = 'c'", "channels_username_shape"),
        ("UPDATE channels SET username = '@abc' WHERE id = 'c'", "channels_username_shape"),
        ("UPDATE channels SET username = '@OTHER' WHERE id = 'c'", "channels_active_username"),
        ("UPDATE channels SET is_active = NULL", "is_active"),
        ("UPDATE templates SET media_type = 'GIF', media_url = 'x'", "templates_media_type_known"),
        ("UPDATE templates SET media_type = 'PHOTO'", "templates_media_whole"),
        ("UPDATE templates SET media_url = 'x'", "templates_media_whole"),
        ("UPDATE campaigns SET retry_limit = 1001", "campaigns_retry_limit_range"),
        ("UPDATE jobs SET status = 'FAILED', error_message = ''", "jobs_failed_with_message"),
        ("UPDATE templates SET content = NULL", "content"),
        ("INSERT INTO batch_channels (batch_id, channel_id) VALUES ('b', 'c')", "batch_channels_once"),
        ("INSERT INTO batch_channels (batch_id, channel_id) VALUES ('b', 'none')", "batch_channels_channel_id_fkey"),
        ("UPDATE users SET username = ''", "users_username_given"),
        ("DELETE FROM channels WHERE id = 'c'", "jobs_channel_id_fkey"),
        ("DELETE FROM templates", "campaigns_template_id_fkey"),
    ],
)
async def test_a_value_that_breaks_a_rule_is_refused(connection, statement, constraint):
    await connection.execute(ROWS)
    with pytest.raises(psycopg.errors.IntegrityError) as refused:
        await connection.execute(statement)
    assert constraint in (refused.value.diag.constraint_name, refused.value.diag.column_name)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET attempts = 3",
        "UPDATE campaigns SET retry_limit = 5",
        "UPDATE campaigns SET status = 'QUEUED'; UPDATE campaigns SET retry_limit = 0",
        "UPDATE channels SET error_count = 5, is_active = false",
        "UPDATE campaigns SET retry_limit = 1000",
        "UPDATE channels SET username = '-1001234', is_active = false WHERE id = 'c'",
    ],
)
async def test_the_last_legal_value_is_taken(connection, statement):
    await connection.execute(ROWS)
    await connection.execute(statement)


async def test_a_campaigns_jobs_are_deleted_with_it_and_a_batchs_listings_with_the_batch(connection):
    await connection.execute(ROWS)
    await connection.execute("DELETE FROM campaigns")
    assert await (await connection.execute("SELECT count(*) FROM jobs")).fetchone() == (0,)
    await connection.execute("DELETE FROM batches")
    assert await (await connection.execute("SELECT count(*) FROM batch_channels")).fetchone() == (0,)


async def test_no_index_of_the_jobs_has_a_column_that_sending_changes(connection, unique):
    rows = await connection.execute("SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = %s", [unique])
    found = {name: definition.partition(" USING btree ")[2] for name, definition in await rows.fetchall()}
    assert found["idx_campaigns_status"] == "(status)"
    assert found["idx_channels_is_active"] == "(is_active)"
    assert {name: columns for name, columns in found.items() if "jobs" in name} == {
        "jobs_pkey": "(id)",
        "jobs_of_campaign": "(campaign_id, id)",
        "idx_jobs_channel": "(channel_id)",
        "jobs_campaign_channel": "(campaign_id, channel_id) WHERE (duplicate_of IS NULL)",
        "jobs_due": "(campaign_id, due_at) WHERE (due_at IS NOT NULL)",
        "jobs_with_errors": "(campaign_id, id) WHERE (error_message IS NOT NULL)",
        "jobs_returned": "(campaign_id, returned_at) WHERE (returned_at IS NOT NULL)",
    }


async def test_a_job_that_another_program_settles_is_counted(connection, unique):
    await connection.execute(ROWS)
    await connection.execute("UPDATE campaigns SET total_jobs = 2")
    await connection.execute("INSERT INTO jobs (id, campaign_id, channel_id) VALUES ('n', 'k', 'd')")
    await connection.execute("SET search_path TO public")  # the triggers need no search path of the writer
    read = f"SELECT sent, failed, progress, status FROM {unique}.campaigns"
    await connection.execute(f"UPDATE {unique}.jobs SET status = 'SENT', sent_at = now() WHERE id = 'j'")
    assert await (await connection.execute(read)).fetchone() == (1, 0, 50, "RUNNING")
    await connection.execute(f"UPDATE {unique}.jobs SET status = 'FAILED', error_message = 'no' WHERE id = 'n'")
    assert await (await connection.execute(read)).fetchone() == (1, 1, 100, "COMPLETED")
