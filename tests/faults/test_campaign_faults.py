"""Workers of a campaign are killed at random points, again and again: every channel has exactly one final state."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections import Counter

import pytest

from campaigns.scripted_transport import HANG, Always, Lie, ScriptedTransport
from faults.nursery import Nursery
from jobwire import embedded
from jobwire.campaigns import CampaignService, CampaignWorker
from jobwire.campaigns.transports import FloodWait, Retryable

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def kill_through(campaign_service, jobwire_postgres, campaign_schemas, campaign_reaches, request):
    """Sends a campaign with three workers, and kills one whenever a random number of further messages was sent."""

    async def run(made, transport, *, messages, kills, concurrency):
        seed = random.randrange(10**6)
        print("seed", seed)
        chance = random.Random(seed)
        await campaign_service.start(made.id)
        with Nursery(f"pgboss+{jobwire_postgres.url}") as workers:
            arguments = ("campaign_worker", jobwire_postgres.url, *campaign_schemas.values(), transport, concurrency)
            pids = [workers.start(*arguments) for _ in range(3)]
            for number in range(kills):
                goal = (messages * number + chance.randrange(messages)) // kills
                async with asyncio.timeout(120):
                    while (found := await campaign_service.status(made.id)).sent + found.failed < goal:
                        await asyncio.sleep(chance.uniform(0.001, 0.03))
                workers.kill(pids.pop(0))
                pids.append(workers.start(*arguments))
            return await campaign_reaches(made.id, "COMPLETED", timeout=120)

    return run


async def _check_rows(database, messages):
    found = await database.execute("SELECT count(DISTINCT channel_id), count(*), min(status), max(status) FROM jobs")
    assert await found.fetchone() == (messages, messages, "SENT", "SENT")


async def test_fifty_kills_lose_no_message_and_record_none_twice(
    kill_through, new_campaign, campaign_database, tmp_path
):
    made = await new_campaign(2000, rate=60_000, retry_limit=60)
    outbox = tmp_path / "outbox.jsonl"
    done = await kill_through(made, f"outbox:{outbox}", messages=2000, kills=50, concurrency=20)
    assert (done.sent, done.failed) == (2000, 0)
    await _check_rows(campaign_database, 2000)
    lines = [json.loads(line) for line in outbox.read_text().splitlines()]
    assert len(lines) == len({line["idempotencyKey"] for line in lines}) == 2000


async def test_a_kill_repeats_at_most_the_message_that_was_being_sent(
    kill_through, new_campaign, campaign_database, tmp_path
):
    made = await new_campaign(200, rate=60_000, retry_limit=60)
    plain = tmp_path / "plain.txt"
    await kill_through(made, f"plain:{plain}", messages=200, kills=10, concurrency=1)
    await _check_rows(campaign_database, 200)
    counts = Counter(plain.read_text().splitlines())
    assert len(counts) == 200
    assert sum(counts.values()) - 200 <= 10


async def test_with_the_usual_retry_limit_every_message_has_a_final_state(
    kill_through, new_campaign, campaign_database, tmp_path
):
    made = await new_campaign(300, rate=60_000)
    done = await kill_through(made, f"outbox:{tmp_path / 'out.jsonl'}", messages=300, kills=8, concurrency=20)
    assert done.sent + done.failed == 300
    found = await campaign_database.execute("SELECT count(*) FROM jobs WHERE status NOT IN ('SENT', 'FAILED')")
    assert await found.fetchone() == (0,)


async def test_a_campaign_goes_on_after_its_database_was_killed(tmp_path):
    channels = tmp_path / "channels.csv"
    channels.write_text("username\n" + "".join(f"@channel_{number}\n" for number in range(400)))
    outbox = tmp_path / "outbox.jsonl"
    with embedded.postgres(tmp_path / "server") as server:
        async with CampaignService(server.url) as service:
            await service.init()
            await service.import_channels(channels, batch="all")
            await service.add_template("hello", "Hello {username}")
            await service.create("spring", batch="all", template="hello", rate=6000, mode="LIVE", retry_limit=20)
            await service.start("spring")
            async with CampaignWorker(server.url, f"outbox:{outbox}", lost_after=3, lease=3, recover_every=1) as worker:
                running = asyncio.create_task(worker.run(signals=False))
                for goal in (50, 150, 250):
                    await _until_sent(service, goal)
                    os.kill(server.pid, signal.SIGKILL)
                await _until_sent(service, 400)
                await worker.stop()
                await running
            done = await service.status("spring")
    assert (done.status, done.sent, done.failed) == ("COMPLETED", 400, 0)
    lines = [json.loads(line) for line in outbox.read_text().splitlines()]
    assert len(lines) == len({line["channelId"] for line in lines}) == 400


async def _until_sent(service, goal):
    async with asyncio.timeout(100):
        while True:
            try:
                if (await service.status("spring")).sent >= goal:
                    return
            except ConnectionError:
                pass
            await asyncio.sleep(0.05)


async def test_a_transport_that_hangs_lies_and_fails_for_some_holds_up_no_other(
    campaign_service, new_campaign, campaign_working, campaign_reaches, campaign_database
):
    made = await new_campaign(100, retry_limit=1)
    cues = {
        "ch1_1": [Always(HANG)],
        "ch1_2": [Always(Lie(7))],
        "ch1_3": [Always(ValueError("a bug"))],
        "ch1_4": [HANG, None],
        "ch1_5": [Always(Retryable("away"))],
    }
    flooded = await new_campaign(3)
    cues["ch2_2"] = [FloodWait(3600)]
    transport = ScriptedTransport(cues)
    async with campaign_working(transport, send_timeout=0.5):
        await campaign_service.start(flooded.id)
        await campaign_service.start(made.id)
        done = await campaign_reaches(made.id, "COMPLETED")
        paused = await campaign_service.status(flooded.id)
    assert (done.sent, done.failed) == (96, 4)
    assert (paused.status, paused.failed) == ("PAUSED", 0)
    found = await campaign_database.execute(
        "SELECT channel_id, split_part(error_message, ':', 1) FROM jobs WHERE status = 'FAILED' ORDER BY channel_id"
    )
    assert await found.fetchall() == [
        ("ch1_1", "TIMEOUT"), ("ch1_2", "NOT_A_RECEIPT"), ("ch1_3", "UNEXPECTED"), ("ch1_5", "RETRYABLE"),
    ]  # fmt: skip
