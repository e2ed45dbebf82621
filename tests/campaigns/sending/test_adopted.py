"""Campaigns of another application go on where they were: no channel gets a message twice, and every campaign ends."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from campaigns.scripted_transport import ScriptedTransport
from campaigns.spec_database import LEGAL, TABLES
from jobwire.campaigns import CampaignService, CampaignWorker

QUICK = "UPDATE campaigns SET delivery_rate = 60000;"
NO_REFERENCES = """
    ALTER TABLE jobs DROP CONSTRAINT jobs_channel_id_fkey;
    ALTER TABLE campaigns DROP CONSTRAINT campaigns_template_id_fkey;"""


@pytest.fixture
async def adopt(bare, jobwire_postgres, campaign_schemas):
    """Makes the application's tables, runs statements on them, and adopts them. Returns a service."""
    async with AsyncExitStack() as stack:

        async def run(statements, tables=TABLES):
            await bare.execute(tables + LEGAL + QUICK + statements)
            made = await stack.enter_async_context(CampaignService(jobwire_postgres.url, **campaign_schemas))
            await made.init()
            return made

        yield run
    queues = campaign_schemas["queue_schema"]
    await bare.execute(f"SET client_min_messages TO warning; DROP SCHEMA IF EXISTS {queues}, {queues}_jobwire CASCADE")


@pytest.fixture
def send_all(jobwire_postgres, campaign_schemas):
    """Works until no campaign is open. Returns the usernames that got a message, sorted."""

    async def run(**options):
        transport = ScriptedTransport()
        async with CampaignWorker(jobwire_postgres.url, transport, **campaign_schemas, **options) as worker:
            async with asyncio.timeout(60):
                await worker.run_until_done(signals=False)
        return sorted(one.channel_username for one in transport.sent)

    return run


async def test_channels_whose_rows_were_cleaned_up_get_nothing_again(adopt, send_all):
    service = await adopt("""
        UPDATE campaigns SET status = 'CANCELLED' WHERE status = 'RUNNING';
        INSERT INTO campaigns (id, name, batch_id, template_id, params, mode, delivery_rate, retry_limit, status,
            progress, total_jobs)
        VALUES ('old', 'old', 'b1', 't1', '{}', 'LIVE', 60000, 3, 'PAUSED', 33, 9);
        INSERT INTO jobs (id, campaign_id, channel_id, status)
        SELECT 'o' || i, 'old', 'ch' || i, 'QUEUED' FROM generate_series(4, 9) i;""")
    await service.resume("old")
    assert await send_all() == [f"@channel{number}" for number in range(4, 10)]
    done = await service.status("old")
    assert (done.status, done.sent, done.total_jobs) == ("COMPLETED", 6, 6)


async def test_a_running_campaign_sends_the_messages_that_it_has(adopt, send_all):
    service = await adopt("")
    assert await send_all() == ["@channel1", "@channel2"]  # j1 was QUEUED, and j2 is that of a dead worker
    done = await service.status("running")
    assert (done.status, done.sent, done.failed, done.total_jobs) == ("COMPLETED", 3, 1, 4)


async def test_a_message_to_a_channel_that_does_not_exist_fails_with_the_reason(adopt, send_all):
    service = await adopt(
        "DELETE FROM batch_channels; DELETE FROM jobs WHERE id = 'j5'; DELETE FROM channels WHERE id IN ('ch1', 'ch2')",
        TABLES + NO_REFERENCES,
    )
    assert await send_all() == []
    done = await service.status("running")
    assert (done.status, done.sent, done.failed) == ("COMPLETED", 1, 3)
    errors = {one.job_id: one.error_message for one in await service.deliveries("running")}
    assert errors["j1"] == errors["j2"] == "CHANNEL_MISSING: the channel does not exist any more"


async def test_a_message_to_a_channel_without_a_username_fails_with_the_reason(adopt, send_all):
    service = await adopt("""UPDATE channels SET username = NULL WHERE id = 'ch1';
        UPDATE channels SET username = 'no name' WHERE id = 'ch2'""")
    assert await send_all(lost_after=1) == []
    done = await service.status("running")
    assert (done.status, done.sent, done.failed) == ("COMPLETED", 1, 3)
    errors = {one.job_id: one.error_message for one in await service.deliveries("running")}
    assert errors["j1"] == errors["j2"] == "USERNAME_INVALID: the channel's username is not of the form @name"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            "UPDATE campaigns SET template_id = 'gone' WHERE id = 'running'",
            "template_id: must be that of a template (got 'gone')",
        ),
        ("UPDATE campaigns SET template_id = NULL WHERE id = 'running'", "template_id: must be that of a template"),
        ("UPDATE templates SET content = '{name}' WHERE id = 't1'", "params.name: is missing"),
        ("UPDATE campaigns SET params = '[]' WHERE id = 'running'", "params: must be a JSON object"),
    ],
    ids=["template gone", "no template", "parameter missing", "params"],
)
@pytest.mark.parametrize("jobs", [True, False], ids=["with jobs", "without"])
async def test_a_campaign_whose_messages_can_not_be_made_fails_with_the_reason(adopt, send_all, change, words, jobs):
    without = "" if jobs else "DELETE FROM jobs; UPDATE campaigns SET progress = 0, total_jobs = 0;"
    service = await adopt(without + change, TABLES + NO_REFERENCES)
    assert await send_all() == []
    failed = await service.status("running")
    assert failed.status == "FAILED"
    assert words in failed.error
