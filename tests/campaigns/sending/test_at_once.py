"""Acts that meet: start and start, pause and the last message, cancel and a retry, a new rate and feeding."""

from __future__ import annotations

import asyncio

import pytest

from campaigns.scripted_transport import ScriptedTransport, Wait
from jobwire.campaigns import IllegalTransition
from jobwire.campaigns.sending import deliver
from jobwire.campaigns.store.jobs import Jobs
from jobwire.campaigns.store.sending import SendingProgress
from jobwire.campaigns.transports import Retryable
from jobwire.errors import StoreUnavailable


async def _rows(database):
    found = await database.execute("SELECT channel_id, status, attempts FROM jobs ORDER BY channel_id")
    return await found.fetchall()


async def test_starts_by_services_and_by_jobs_of_the_queue(service, campaign, working, reaches, database):
    made = await campaign(20)
    transport = ScriptedTransport()

    async def ask_by_queue():
        async with service._connections.use() as connection, connection.transaction():
            await service._queues.add_start(connection, made.id)

    async with working(transport), working(transport):
        asked = [service.start(made.id) for _ in range(4)] + [ask_by_queue() for _ in range(4)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        await reaches(made.id, "COMPLETED")
    assert {type(answer) for answer in answers} <= {type(made), IllegalTransition, type(None)}
    assert [(status, attempts) for _, status, attempts in await _rows(database)] == [("SENT", 1)] * 20
    assert len(transport.sent) == 20


async def test_a_pause_during_the_last_message_ends_with_the_campaign_completed(service, campaign, working, reaches):
    made = await campaign(1)
    last = Wait()
    async with working(ScriptedTransport({"ch1_1": [last]})):
        await service.start(made.id)
        async with asyncio.timeout(30):
            await last.reached.wait()
        await service.pause(made.id)
        last.go.set()
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.paused_reason, done.paused_until) == (1, None, None)


async def test_a_cancel_during_an_attempt_ends_its_retries(service, campaign, working, database, monkeypatch):
    monkeypatch.setattr(deliver, "RETRY_DELAY", 0.05)
    made = await campaign(1)
    attempt = Wait(cue=Retryable("away"))
    transport = ScriptedTransport({"ch1_1": [attempt]})
    async with working(transport):
        await service.start(made.id)
        async with asyncio.timeout(30):
            await attempt.reached.wait()
        await service.cancel(made.id)
        attempt.go.set()
        async with asyncio.timeout(30):
            while await _fed_or_sending(database):
                await asyncio.sleep(0.02)
    assert await _rows(database) == [("ch1_1", "QUEUED", 1)]
    assert len(transport.asked) == 1
    with pytest.raises(IllegalTransition, match="is CANCELLED"):
        await service.resume(made.id)


async def _fed_or_sending(database):
    found = await database.execute("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL OR status = 'SENDING'")
    return (await found.fetchone())[0]


async def test_rates_changed_while_the_queue_is_fed_lose_and_repeat_nothing(service, campaign, working, reaches):
    made = await campaign(300, rate=6000)
    transport = ScriptedTransport()
    async with working(transport), working(transport):
        await service.start(made.id)
        for rate in (60, 60_000, 600, 1_000_000):
            await service.set_rate(made.id, rate)
            await service.pause(made.id)
            await service.resume(made.id)
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed) == (300, 0)
    assert sorted(one.channel_id for one in transport.sent) == sorted(f"ch1_{i}" for i in range(1, 301))


@pytest.mark.parametrize(("table", "statement"), [(SendingProgress, "reserve"), (Jobs, "claim_many")])
async def test_an_outage_of_the_database_costs_a_message_no_attempt(  # noqa: PLR0917 - fixtures
    service, campaign, working, reaches, database, campaign_schemas, monkeypatch, table, statement
):
    made = await campaign(20, retry_limit=0)
    usual, refused = getattr(table, statement), []

    async def away_at_first(*arguments, **options):
        if not refused:
            refused.append(arguments)
            raise StoreUnavailable("away")
        return await usual(*arguments, **options)

    monkeypatch.setattr(table, statement, away_at_first)
    await service.start(made.id)
    async with working(ScriptedTransport()):
        done = await reaches(made.id, "COMPLETED", timeout=20)
    queues = campaign_schemas["queue_schema"]
    failed = await database.execute(f"SELECT count(*) FROM {queues}.job WHERE state IN ('failed', 'retry')")
    assert (done.sent, len(refused), await failed.fetchone()) == (20, 1, (0,))
