"""A campaign is sent: every channel once, through retries, blocks, floods, pauses and errors of all kinds."""

from __future__ import annotations

import asyncio

import pytest

from campaigns.scripted_transport import Always, Lie, ScriptedTransport, Wait
from jobwire import Queue
from jobwire.campaigns import CampaignWorker, IllegalTransition
from jobwire.campaigns.sending import deliver
from jobwire.campaigns.sending.queues import SEND, START
from jobwire.campaigns.transports import FloodWait, PeerBlocked, Permanent, Retryable, TransportBroken
from jobwire.campaigns.transports import sender as sender_module


@pytest.fixture
def quick_retries(monkeypatch):
    """Retries follow after 50 ms instead of 5 s."""
    monkeypatch.setattr(deliver, "RETRY_DELAY", 0.05)


async def _jobs(database, *columns):
    found = await database.execute(f"SELECT {', '.join(columns)} FROM jobs ORDER BY channel_id")
    return await found.fetchall()


async def test_every_channel_gets_its_message_once(service, campaign, working, reaches):
    made = await campaign(120, content="Hello {username}, meet {product}", params={"product": "Tea"})
    transport = ScriptedTransport()
    async with working(transport):
        await service.start(made.id)
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed, done.total_jobs, done.progress) == (120, 0, 120, 100)
    assert sorted(one.text for one in transport.sent) == sorted(f"Hello @channel1_{i}, meet Tea" for i in range(1, 121))
    assert {one.attempt for one in transport.sent} == {1}
    assert (transport.opened, transport.closed) == (1, 1)


async def test_a_campaign_without_channels_is_completed_by_its_start(service, campaign, working, reaches):
    made = await campaign(0)
    async with working(ScriptedTransport()):
        await service.start(made.id)
        done = await reaches(made.id, "COMPLETED")
    assert (done.total_jobs, done.progress) == (0, 100)


async def test_in_test_mode_nothing_reaches_the_transport(service, campaign, working, reaches):
    made = await campaign(5, mode="TEST")
    transport = ScriptedTransport()
    async with working(transport):
        await service.start(made.id)
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, transport.asked) == (5, [])


@pytest.mark.parametrize("many", [False, True], ids=["one by one", "together"])
async def test_in_test_mode_the_health_of_channels_is_left_alone(  # noqa: PLR0917 - fixtures
    service, campaign, working, reaches, database, many
):
    class Recording(ScriptedTransport):
        records_only = True

    async def send_many(self, messages):
        return [await self.send(message) for message in messages]

    if many:
        Recording.send_many = send_many
    made = await campaign(3, mode="TEST")
    await database.execute("UPDATE channels SET error_count = 4")
    cues = {} if many else {"ch1_1": [Permanent("no")], "ch1_2": [PeerBlocked("blocked")]}
    async with working(Recording(cues)):
        await service.start(made.id)
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed) == ((3, 0) if many else (1, 2))
    found = await database.execute("SELECT DISTINCT error_count, is_active FROM channels")
    assert await found.fetchall() == [(4, True)]


async def test_a_start_is_made_once_however_often_it_is_asked_for(service, campaign, working, reaches):
    made = await campaign(10)
    answers = await asyncio.gather(*(service.start(made.id) for _ in range(8)), return_exceptions=True)
    assert sorted(type(answer).__name__ for answer in answers) == ["Campaign", *["IllegalTransition"] * 7]
    transport = ScriptedTransport()
    async with working(transport):
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, len(transport.sent)) == (10, 10)


async def test_a_retryable_error_is_tried_again_up_to_the_limit(  # noqa: PLR0917 - fixtures
    service, campaign, working, reaches, database, quick_retries
):
    made = await campaign(3, retry_limit=2)
    cues = {"ch1_1": [Retryable("slow"), Lie("no receipt")], "ch1_2": [Always(Retryable("away", reason="AWAY"))]}
    transport = ScriptedTransport(cues)
    async with working(transport):
        await service.start(made.id)
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed) == (2, 1)
    assert await _jobs(database, "channel_id", "status", "attempts", "error_message") == [
        ("ch1_1", "SENT", 3, None),
        ("ch1_2", "FAILED", 3, "AWAY: away"),
        ("ch1_3", "SENT", 1, None),
    ]
    keys = {one.idempotency_key for one in transport.asked if one.channel_id == "ch1_1"}
    assert len(keys) == 1


async def test_a_permanent_error_fails_at_once_and_counts_against_the_channel(
    service, campaign, working, reaches, database
):
    made = await campaign(2)
    await database.execute("UPDATE channels SET error_count = 4")
    async with working(ScriptedTransport({"ch1_1": [Permanent("too long", reason="TOO_LONG")]})):
        await service.start(made.id)
        await reaches(made.id, "COMPLETED")
    found = await database.execute("SELECT id, error_count, is_active, last_error FROM channels ORDER BY id")
    assert await found.fetchall() == [("ch1_1", 5, False, "TOO_LONG: too long"), ("ch1_2", 0, True, None)]
    report = await service.report(made.id)
    assert [(one.reason, one.count, one.example) for one in report.reasons] == [("TOO_LONG", 1, "TOO_LONG: too long")]


async def test_a_block_deactivates_the_channel_and_ends_its_other_messages(
    service, campaign, working, reaches, database
):
    first, second = await campaign(2), await campaign(1)
    await database.execute("INSERT INTO batch_channels VALUES ('b2', 'ch1_1')")
    await service.start(second.id)
    await service.pause(second.id)
    cues = {"ch1_1": [PeerBlocked("blocked")], "ch1_2": [Wait()]}
    transport = ScriptedTransport(cues)
    async with working(transport):
        await service.resume(second.id)  # its messages are made, and wait behind those of the first
        await service.set_rate(second.id, 1)
        await service.start(first.id)
        async with asyncio.timeout(30):
            while not any(status == "FAILED" for (status,) in await _jobs(database, "status")):
                await asyncio.sleep(0.02)
        cues["ch1_2"][0].go.set()
        await reaches(first.id, "COMPLETED")
    found = await database.execute("SELECT is_active FROM channels WHERE id = 'ch1_1'")
    assert await found.fetchone() == (False,)
    rows = await _jobs(database, "campaign_id", "channel_id", "status")
    assert "QUEUED" not in {status for campaign_id, channel, status in rows if channel == "ch1_1"}, rows


async def test_a_flood_pauses_the_campaign_which_goes_on_by_itself(service, campaign, working, reaches, database):
    made = await campaign(30)
    transport = ScriptedTransport({"ch1_7": [FloodWait(1), FloodWait(2)]})
    async with working(transport):
        await service.start(made.id)
        paused = await reaches(made.id, "PAUSED")
        assert (paused.paused_reason, paused.paused_until is not None) == ("FLOOD_WAIT", True)
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed, done.paused_until) == (30, 0, None)
    found = await database.execute("SELECT max(attempts) FROM jobs")
    assert await found.fetchone() == (1,)  # a flood costs no attempt


async def test_a_flood_limit_of_one_channel_delays_its_message_only(service, campaign, working, reaches, database):
    made = await campaign(30, retry_limit=0)
    transport = ScriptedTransport({"ch1_7": [FloodWait(2, channel_only=True)]})
    async with working(transport):
        await service.start(made.id)
        async with asyncio.timeout(30):
            while (found := await service.status(made.id)).sent < 29:
                await asyncio.sleep(0.02)
        assert found.status == "RUNNING"
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, done.failed) == (30, 0)
    assert [one.channel_id for one in transport.asked].count("ch1_7") == 2
    found = await database.execute("SELECT max(attempts) FROM jobs")
    assert await found.fetchone() == (1,)


class Careless(Permanent):
    """An error whose author has not called the base class."""

    def __init__(self) -> None:
        self.reason = None

    def __str__(self) -> str:
        return "no\0\ud800"


class CarelessWait(FloodWait):
    def __init__(self) -> None:
        self.channel_only = True


async def test_errors_of_careless_classes_are_stored(service, campaign, working, reaches, monkeypatch):
    monkeypatch.setattr(sender_module, "UNKNOWN_WAIT", 1.0)
    made = await campaign(3)
    async with working(ScriptedTransport({"ch1_1": [Careless()], "ch1_2": [CarelessWait()]})):
        await service.start(made.id)
        done = await reaches(made.id, "COMPLETED", timeout=20)
    assert (done.sent, done.failed) == (2, 1)
    [reason] = (await service.report(made.id)).reasons
    assert (reason.reason, reason.example) == ("PERMANENT", "PERMANENT: no?")


async def test_a_broken_transport_fails_the_campaign_and_loses_no_message(
    service, campaign, working, reaches, database
):
    made = await campaign(50)
    async with working(ScriptedTransport(default=[Always(TransportBroken("the session was revoked"))])):
        await service.start(made.id)
        failed = await reaches(made.id, "FAILED")
    assert "the session was revoked" in failed.error
    found = await database.execute("SELECT status, sum(attempts)::integer FROM jobs GROUP BY status")
    assert await found.fetchall() == [("QUEUED", 0)]


async def test_a_campaign_that_can_not_be_made_into_messages_fails(service, campaign, working, reaches, database):
    made = await campaign(2, content="Hello {name}", params={"name": "x"})
    await database.execute("UPDATE campaigns SET params = '{}'")
    other = await campaign(1)
    async with working(ScriptedTransport()):
        await service.start(made.id)
        await service.start(other.id)
        failed = await reaches(made.id, "FAILED")
        await reaches(other.id, "COMPLETED")
    assert "params.name: is missing" in failed.error


@pytest.mark.parametrize("act", ["pause", "cancel"])
async def test_no_message_is_sent_after_a_pause_or_a_cancel(service, campaign, working, reaches, act):
    made = await campaign(400, rate=60)
    transport = ScriptedTransport({}, default=[])
    async with working(transport):
        await service.start(made.id)
        async with asyncio.timeout(30):
            while not transport.sent:
                await asyncio.sleep(0.01)
        await getattr(service, act)(made.id)
        seen = len(transport.asked)
        # The messages in the queue come due within their window, and give up their places.
        async with asyncio.timeout(60):
            while await _fed(service, made.id):
                await asyncio.sleep(0.05)
        assert len(transport.asked) <= seen + 1  # one may have had its claim already
        if act == "pause":
            await service.set_rate(made.id, 1_000_000)
            await service.resume(made.id)
            done = await reaches(made.id, "COMPLETED")
            assert done.sent == 400
    assert len({one.channel_id for one in transport.sent}) == len(transport.sent)


async def _fed(service, campaign_id):
    async with service._connections.use() as connection:
        return await service._store.jobs.count_fed(connection, campaign_id, 1000)


async def test_a_queue_that_lost_everything_is_fed_again(service, campaign, working, reaches, campaign_schemas):
    made = await campaign(20, rate=60)
    transport = ScriptedTransport()
    async with working(transport, lost_after=1):
        await service.start(made.id)
        async with asyncio.timeout(30):
            while not await _fed(service, made.id):
                await asyncio.sleep(0.01)
        async with Queue(SEND, service._queues.url) as queue:
            await queue.admin.drain(delayed=True)
        await service.set_rate(made.id, 1_000_000)
        done = await reaches(made.id, "COMPLETED")
    assert (done.sent, len(transport.sent)) == (20, 20)


async def test_the_slowest_rate_feeds_one_message_and_a_quicker_one_acts_at_once(
    service, campaign, working, reaches, database
):
    made = await campaign(5, rate=1)
    transport = ScriptedTransport()
    async with working(transport):
        await service.start(made.id)
        async with asyncio.timeout(30):
            while not transport.sent:
                await asyncio.sleep(0.02)
        await service.set_rate(made.id, 60_000)
        done = await reaches(made.id, "COMPLETED", timeout=40)
    assert done.sent == 5


async def test_malformed_jobs_of_others_do_not_stop_the_queues(service, campaign, working, reaches):
    made = await campaign(3)
    bad = [None, 7, {}, {"jobId": 1}, {"jobId": "x", "campaignId": "y", "channelId": "z", "channelUsername": "@a"}]
    whole = {**bad[-1], "templateContent": "hi", "attempt": 1}
    async with Queue(SEND, service._queues.url) as queue, Queue(START, service._queues.url) as starts:
        jobs = [await queue.add(data) for data in [*bad, whole]]
        await starts.add({"campaignId": "unknown"}, extra={"singletonKey": "unknown"})
        await starts.add({"campaign": 5}, extra={"singletonKey": "other"})
        async with working(ScriptedTransport()):
            await service.start(made.id)
            await reaches(made.id, "COMPLETED")
            assert await jobs[-1].wait(timeout=30) == {"status": "SKIPPED"}
        failed = [await queue.get(job.id) for job in jobs[:-1]]
    assert {job.state for job in failed} == {"failed"}
    assert "data.jobId: must be a string that is not empty (got 1)" in failed[3].error


async def test_a_worker_of_a_burst_ends_with_the_last_campaign(
    service, campaign, jobwire_postgres, campaign_schemas, database
):
    first, second = await campaign(30), await campaign(5)
    await service.start(first.id)
    await service.start(second.id)
    await service.pause(second.id)
    transport = ScriptedTransport()
    async with CampaignWorker(jobwire_postgres.url, transport, **campaign_schemas) as worker:
        async with asyncio.timeout(60):
            await worker.run_until_done(signals=False)
    assert (await service.status(first.id)).status == "COMPLETED"
    assert len(transport.sent) == 30


async def test_what_can_not_happen_is_refused_with_both_states(service, campaign):
    made = await campaign(1)
    with pytest.raises(IllegalTransition, match="is QUEUED and can't become PAUSED"):
        await service.pause(made.id)
    await service.cancel("campaign1")
    with pytest.raises(IllegalTransition, match="is CANCELLED and can't become RUNNING"):
        await service.start(made.id)
