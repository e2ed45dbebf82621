"""Campaigns beside Node: either side starts them, sends their messages, and made the queues."""

from __future__ import annotations

import asyncio
import contextlib

import psycopg
import pytest

from awaiting import eventually
from campaigns.scripted_transport import ScriptedTransport
from campaigns.spec_database import LEGAL, TABLES
from jobwire import Queue, State, connect
from jobwire.backends.pgboss import Boss
from jobwire.campaigns import CampaignService, CampaignWorker
from jobwire.cli import main

from .node import NodeBoss, Peer
from .test_older_schemas import RELEASES

OFTEN = {"pollingIntervalSeconds": 0.5, "batchSize": 5}
NEWS = [f"@news_{number}" for number in range(1, 5)]


@pytest.fixture
def tables(unique):
    return f"{unique}_tables"


@pytest.fixture
def places(unique, tables):
    """The options that name the schemas: that of the queues is Node's."""
    return {"schema": tables, "queue_schema": unique}


@pytest.fixture
async def service(jobwire_postgres, places, node):
    async with CampaignService(jobwire_postgres.url, **places) as service:
        await service.init()
        yield service


async def campaign_of(service, tmp_path, usernames=NEWS, **template):
    """Creates a campaign for channels of these usernames. Returns it."""
    file = tmp_path / "channels.csv"
    file.write_text("\n".join(["username", *usernames]))
    await service.import_channels(file, batch="news")
    await service.add_template("hello", "Hello {username}, meet {product}!", **template)
    return await service.create(
        "spring", batch="news", template="hello", params={"product": "Tea"}, rate=1_000_000, mode="LIVE"
    )


@contextlib.asynccontextmanager
async def working(jobwire_postgres, places, transport, *, sends=True):
    """Runs a worker of ours until the end of the block. One that does not send starts and feeds campaigns only."""
    async with CampaignWorker(jobwire_postgres.url, transport, shutdown_timeout=2, **places) as worker:
        running = asyncio.create_task(worker.run(signals=False))
        if not sends:
            await worker.worker.pause(queue="send-message")
        try:
            yield worker.worker
        finally:
            await worker.stop()
            await running


async def completed(service, campaign):
    async def look():
        found = await service.status(campaign.id)
        return found if found.status == "COMPLETED" else None

    return await eventually(look, within=60)


def start_options(campaign):
    """The options of the specification."""
    return {"retryLimit": 1, "singletonKey": campaign.id}


@pytest.mark.parametrize("user", [{"userId": "u1"}, {}], ids=["with a user", "without"])
async def test_node_starts_a_campaign_and_python_sends_it(*, node, service, jobwire_postgres, places, tmp_path, user):
    campaign = await campaign_of(service, tmp_path)
    payload = {"campaignId": campaign.id, **user}
    job_id = await node.call("send", "start-campaign", payload, start_options(campaign))
    assert await node.call("send", "start-campaign", payload, start_options(campaign)) is None  # one at a time
    transport = ScriptedTransport()
    async with working(jobwire_postgres, places, transport):
        done = await completed(service, campaign)
        again = await node.call("send", "start-campaign", payload, start_options(campaign))

        async def both_done():
            jobs = [await node.call("getJobById", "start-campaign", one) for one in (job_id, again)]
            return jobs if {job["state"] for job in jobs} == {"completed"} else None

        first, second = await eventually(both_done)
    assert (done.sent, done.failed, done.progress) == (4, 0, 100)
    assert first["output"] == {"status": "RUNNING"}
    assert second["output"] == {"status": "COMPLETED"}
    assert sorted(one.text for one in transport.sent) == sorted(f"Hello {name}, meet Tea!" for name in NEWS)
    assert await node.heard() == []


async def test_node_sends_what_python_feeds_and_is_counted(
    *, node, service, jobwire_postgres, places, tables, tmp_path
):
    campaign = await campaign_of(service, tmp_path)
    refuse = [NEWS[0]]
    async with (
        working(jobwire_postgres, places, ScriptedTransport(), sends=False),
        node.work("send-message", "deliver", OFTEN, tables=tables, refuse=refuse) as worker,
    ):
        await service.start(campaign.id)
        done = await completed(service, campaign)
        received = await worker.received()
    assert (done.sent, done.failed, done.progress, done.total_jobs) == (3, 1, 100, 4)
    became = {one.username: one for one in await service.deliveries(campaign.id)}
    assert {name: (one.status, one.attempts, one.error_message) for name, one in became.items()} == {
        name: ("FAILED", 1, "it is closed") if name in refuse else ("SENT", 1, None) for name in NEWS
    }
    assert sorted(received, key=lambda data: data["channelUsername"]) == [
        {
            "jobId": became[name].job_id,
            "campaignId": campaign.id,
            "channelId": became[name].channel_id,
            "channelUsername": name,
            "templateContent": f"Hello {name}, meet Tea!",
            "attempt": 1,
        }
        for name in NEWS
    ]
    assert [(one.username, one.error_count) for one in await service.channels() if one.error_count] == [(NEWS[0], 1)]
    [reason] = (await service.report(campaign.id)).reasons
    assert (reason.reason, reason.count, reason.example) == ("OTHER", 1, "it is closed")


@pytest.mark.parametrize("media_type", ["PHOTO", "VIDEO", "DOCUMENT"])
async def test_node_reads_the_media_of_a_message(
    *, node, service, jobwire_postgres, places, tables, tmp_path, media_type
):
    media = {"media_type": media_type, "media_url": "https://example.com/a"}
    campaign = await campaign_of(service, tmp_path, NEWS[:1], **media)
    async with (
        working(jobwire_postgres, places, ScriptedTransport(), sends=False),
        node.work("send-message", "deliver", OFTEN, tables=tables) as worker,
    ):
        await service.start(campaign.id)
        await completed(service, campaign)
        [received] = await worker.received()
    assert (received["mediaType"], received["mediaUrl"]) == (media_type, "https://example.com/a")
    assert {name: type(value) for name, value in received.items()} == {
        "jobId": str, "campaignId": str, "channelId": str, "channelUsername": str, "templateContent": str,
        "mediaType": str, "mediaUrl": str, "attempt": int,
    }  # fmt: skip


async def test_both_send_one_campaign_and_each_channel_gets_it_once(
    *, node, service, jobwire_postgres, places, tables, tmp_path
):
    usernames = [f"@shared_{number}" for number in range(60)]
    campaign = await campaign_of(service, tmp_path, usernames)
    transport = ScriptedTransport()
    async with (
        working(jobwire_postgres, places, transport, sends=False) as ours,
        node.work("send-message", "deliver", OFTEN, tables=tables) as theirs,
    ):
        await service.start(campaign.id)
        await eventually(theirs.runs)
        ours.resume(queue="send-message")
        done = await completed(service, campaign)
        received = await theirs.received()
    by_node = sorted(data["channelUsername"] for data in received)
    by_python = sorted(message.channel_username for message in transport.sent)
    assert by_node
    assert by_python
    assert sorted(by_node + by_python) == sorted(usernames)
    assert (done.sent, done.failed, done.total_jobs) == (60, 0, 60)
    assert {(one.status, one.attempts) for one in await service.deliveries(campaign.id)} == {("SENT", 1)}


async def test_a_message_that_node_puts_back_is_sent_by_python(
    *, node, service, jobwire_postgres, places, tables, tmp_path, connection
):
    campaign = await campaign_of(service, tmp_path, NEWS[:1])
    transport = ScriptedTransport()
    async with working(jobwire_postgres, places, transport, sends=False) as ours:
        async with node.work("send-message", "deliver", OFTEN, tables=tables, postpone=NEWS):
            await service.start(campaign.id)
            async with Queue("send-message", connection) as queue:
                await eventually(lambda: _is_queued(service, campaign, attempts=1))
                [waiting] = await eventually(lambda: queue.jobs(State.DELAYED))
        async with Queue("send-message", connection) as queue:
            await queue.admin.promote(waiting.id)
        ours.resume(queue="send-message")
        done = await completed(service, campaign)
    assert (done.sent, done.failed) == (1, 0)
    assert [(one.text, one.attempt) for one in transport.sent] == [(f"Hello {NEWS[0]}, meet Tea!", 2)]


async def _is_queued(service, campaign, *, attempts):
    return [(one.status, one.attempts) for one in await service.deliveries(campaign.id)] == [("QUEUED", attempts)]


async def test_queues_of_a_node_application_keep_jobs_longer_and_are_else_left_as_they_are(
    *, node, jobwire_postgres, places, tmp_path
):
    """The application of the specification makes them without a policy, and sends with options."""
    for name in ("start-campaign", "send-message"):
        await node.call("createQueue", name, {"retryLimit": 3, "retryDelay": 5, "retryBackoff": True})
    before = await settings_of(jobwire_postgres, places)
    longer = {"retention_seconds": 365 * 86400, "deletion_seconds": 37 * 86400}
    async with CampaignService(jobwire_postgres.url, **places) as service:
        report = await service.init()
        assert report.notes == (
            "queue start-campaign has the policy standard instead of exclusive, which can't be changed; "
            "campaigns work with it",
        )
        after = await settings_of(jobwire_postgres, places)
        wanted = {
            "start-campaign": before["start-campaign"] | longer | {"retry_limit": 0},
            "send-message": before["send-message"] | longer,
        }
        for name, each in wanted.items():
            assert after[name] == each | {"updated_on": after[name]["updated_on"]}
        await service.init()
        assert await settings_of(jobwire_postgres, places) == after
        campaign = await campaign_of(service, tmp_path)
        for _ in range(2):
            await node.call("send", "start-campaign", {"campaignId": campaign.id}, start_options(campaign))
        transport = ScriptedTransport()
        async with working(jobwire_postgres, places, transport):
            await completed(service, campaign)
        assert sorted(message.channel_username for message in transport.sent) == NEWS


@pytest.fixture(params=RELEASES, ids=lambda version: f"schema {version}")
async def old(request, jobwire_postgres, unique):
    """A schema made by an older release of Node's pg-boss, and its version."""
    with Peer(jobwire_postgres.url, RELEASES[request.param]) as peer:
        node = NodeBoss(peer, unique)
        await node.start()
        yield node, request.param
        await node.stop()


async def test_a_schema_of_an_older_release_is_used_and_a_second_init_changes_nothing(
    *, old, jobwire_postgres, places, rows, tmp_path
):
    node, version = old
    async with CampaignService(jobwire_postgres.url, **places) as service:
        await service.init()
        made = await settings_of(jobwire_postgres, places)
        assert {name: (each["policy"], each["retry_limit"]) for name, each in made.items()} == {
            "send-message": ("standard", 2), "start-campaign": ("exclusive", 0),
        }  # fmt: skip
        assert {each["deletion_seconds"] for each in made.values()} == {37 * 86400}
        assert {each["retention_seconds"] for each in made.values()} == {365 * 86400}
        assert {each["expire_seconds"] for each in made.values()} == {15 * 60}
        send = made["send-message"]
        assert (send["retry_delay"], send["retry_backoff"], send.get("heartbeat_seconds", 60)) == (5, True, 60)
        campaign = await campaign_of(service, tmp_path)
        job_id = await node.call("send", "start-campaign", {"campaignId": campaign.id}, start_options(campaign))
        assert await node.call("send", "start-campaign", {"campaignId": campaign.id}, start_options(campaign)) is None
        transport = ScriptedTransport()
        async with working(jobwire_postgres, places, transport):
            await completed(service, campaign)
        assert sorted(message.channel_username for message in transport.sent) == NEWS
        before = await settings_of(jobwire_postgres, places)
        jobs = await rows("SELECT * FROM job ORDER BY id")
        report = await service.init()
        assert report.version_before == report.version
        assert await settings_of(jobwire_postgres, places) == before
        assert await rows("SELECT * FROM job ORDER BY id") == jobs
    assert (await node.call("getJobById", "start-campaign", job_id))["state"] == "completed"
    assert await rows("SELECT version FROM version") == [{"version": version}]
    assert await node.heard() == []


async def test_an_application_with_pg_boss_26_is_adopted_by_the_command_and_sent_to_the_end(
    *, jobwire_postgres, places, unique, tables, rows, capfd
):
    at = ["--url", jobwire_postgres.url, "--schema", tables, "--queue-schema", unique]

    async def init():
        capfd.readouterr()
        assert await asyncio.to_thread(main, ["campaign", "init", *at]) == 0
        return capfd.readouterr().out

    with Peer(jobwire_postgres.url, RELEASES[26]) as peer:
        node = NodeBoss(peer, unique)
        await node.start()
        for name in ("start-campaign", "send-message"):
            await node.call("createQueue", name, {})
        async with await psycopg.AsyncConnection.connect(jobwire_postgres.url, autocommit=True) as database:
            await database.execute(f"CREATE SCHEMA {tables}; SET search_path TO {tables}")
            await database.execute(TABLES + LEGAL + "UPDATE campaigns SET delivery_rate = 60000")
        assert "made the campaign tables" in await init()
        before = await settings_of(jobwire_postgres, places)
        assert "is up to date" in await init()
        assert await settings_of(jobwire_postgres, places) == before
        transport = ScriptedTransport()
        async with CampaignWorker(jobwire_postgres.url, transport, **places) as worker:
            async with asyncio.timeout(60):
                await worker.run_until_done(signals=False)
        await node.stop()
    assert sorted(one.channel_username for one in transport.sent) == ["@channel1", "@channel2"]
    assert await rows("SELECT version FROM version") == [{"version": 26}]


async def settings_of(jobwire_postgres, places):
    """Returns the settings of the queues, by name."""
    async with connect(f"pgboss+{jobwire_postgres.url}?schema={places['queue_schema']}") as connection:
        return {queue.name: dict(queue.raw) for queue in await Boss(connection).queues()}
