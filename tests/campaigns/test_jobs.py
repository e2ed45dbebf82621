"""Jobs are created, claimed and settled so that each has one final state and every counter is right."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobwire.campaigns import JobStatus, NotFound, Outcome, Settlement
from jobwire.campaigns.ids import new_id
from jobwire.campaigns.store.campaigns import NewCampaign
from jobwire.campaigns.store.jobs import LOST

CUID = re.compile(r"c[0-9a-z]{24}")


async def _campaign(store, connection, campaign_id):
    found = await store.campaigns.get(connection, campaign_id)
    return found.status, found.sent, found.failed, found.total_jobs, found.progress


async def test_jobs_are_created_once_for_the_active_channels_of_the_batch(connection, store, campaign_of):
    _, _ = await campaign_of(0)
    batch = await store.batches.add(connection, "mixed")
    channels = [await store.channels.add(connection, f"@mixed{one}") for one in range(4)]
    await store.batches.add_channels(connection, batch.id, [one.id for one in channels])
    await store.channels.block(connection, channels[0].id, "PEER_BLOCKED")
    template = (await store.templates.page(connection))[0]
    new = NewCampaign("mixed", batch.id, template.id, {}, "LIVE", 60, 3)
    campaign = await store.campaigns.add(connection, new)
    assert await store.jobs.create(connection, campaign.id) is None  # not started
    await store.campaigns.start(connection, campaign.id)
    assert await store.jobs.create(connection, campaign.id) == 3
    assert await store.jobs.create(connection, campaign.id) == 0
    jobs = await store.jobs.page(connection, campaign.id)
    assert {job.channel_id for job in jobs} == {one.id for one in channels[1:]}
    assert all(CUID.fullmatch(job.id) for job in jobs)
    assert len({job.id for job in jobs}) == 3
    assert await _campaign(store, connection, campaign.id) == ("RUNNING", 0, 0, 3, 0)


def test_ids_are_made_in_the_shape_of_a_cuid():
    made = {new_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(CUID.fullmatch(one) for one in made)


async def test_a_campaign_without_channels_is_completed_at_once(connection, store, campaign_of):
    campaign_id, _ = await campaign_of(0)
    assert await _campaign(store, connection, campaign_id) == ("COMPLETED", 0, 0, 0, 100)


async def test_of_two_creations_at_once_each_channel_gets_one_job(connection, store, open_connection, campaign_of):
    campaign_id, _ = await campaign_of(5)
    await connection.execute("DELETE FROM jobs; UPDATE campaigns SET total_jobs = 0, status = 'RUNNING'")
    connections = [await open_connection() for _ in range(4)]
    created = await asyncio.gather(*(store.jobs.create(one, campaign_id) for one in connections))
    assert sorted(created) == [0, 0, 0, 5]
    assert await _campaign(store, connection, campaign_id) == ("RUNNING", 0, 0, 5, 0)


async def test_a_claim_counts_the_attempt_and_keeps_its_mark(connection, store, campaign_of):
    _, [job_id] = await campaign_of(1)
    first = await store.jobs.claim(connection, job_id)
    assert (first.attempt, bool(first.idempotency_key)) == (1, True)
    assert await store.jobs.claim(connection, job_id) is None
    assert (await store.jobs.requeue(connection, first, "timeout")).status == JobStatus.QUEUED
    second = await store.jobs.claim(connection, job_id)
    assert (second.attempt, second.idempotency_key) == (2, first.idempotency_key)
    assert (await store.jobs.release(connection, second)).status == JobStatus.QUEUED
    assert (await store.jobs.claim(connection, job_id)).attempt == 2
    job = await store.jobs.get(connection, job_id)
    assert (job.status, job.attempts, job.error_message) == ("SENDING", 2, "timeout")
    assert job.idempotency_key == first.idempotency_key


@pytest.mark.parametrize("act", ["pause", "cancel"])
async def test_a_job_of_a_campaign_that_does_not_run_is_not_claimed(connection, store, campaign_of, act):
    campaign_id, [job_id] = await campaign_of(1)
    await getattr(store.campaigns, act)(connection, campaign_id)
    assert await store.jobs.claim(connection, job_id) is None
    assert (await store.jobs.get(connection, job_id)).attempts == 0


async def test_of_ten_claims_at_once_one_succeeds(connection, store, campaign_of, open_connection):
    _, [job_id] = await campaign_of(1)
    connections = [await open_connection() for _ in range(10)]
    claims = await asyncio.gather(*(store.jobs.claim(one, job_id) for one in connections))
    assert len([claim for claim in claims if claim is not None]) == 1


async def test_the_last_attempt_fails_instead_of_being_queued_again(connection, store, campaign_of):
    campaign_id, [job_id] = await campaign_of(1, retry_limit=1)
    statuses = []
    while (claim := await store.jobs.claim(connection, job_id)) is not None:
        statuses.append((claim.attempt, (await store.jobs.requeue(connection, claim, "no route")).status))
    assert statuses == [(1, "QUEUED"), (2, "FAILED")]
    job = await store.jobs.get(connection, job_id)
    assert (job.status, job.error_message, job.failed_at is not None, job.sent_at) == ("FAILED", "no route", True, None)
    assert await _campaign(store, connection, campaign_id) == ("COMPLETED", 0, 1, 1, 100)


async def test_progress_follows_each_settled_job_and_the_last_one_completes(connection, store, campaign_of):
    campaign_id, jobs = await campaign_of(3)
    seen = []
    for number, job_id in enumerate(jobs):
        claim = await store.jobs.claim(connection, job_id)
        settle = store.jobs.failed(connection, claim, "") if number == 1 else store.jobs.sent(connection, claim)
        assert await settle is not None
        seen.append(await _campaign(store, connection, campaign_id))
    assert seen == [("RUNNING", 1, 0, 3, 33), ("RUNNING", 1, 1, 3, 66), ("COMPLETED", 2, 1, 3, 100)]
    assert (await store.jobs.get(connection, jobs[1])).error_message == "unknown"
    assert (await store.campaigns.get(connection, campaign_id)).completed_at is not None


async def test_jobs_settled_by_many_at_once_are_all_counted(connection, store, campaign_of, open_connection):
    campaign_id, jobs = await campaign_of(60)
    connections = [await open_connection() for _ in range(6)]

    async def work(one, part):
        for job_id in part:
            await store.jobs.sent(one, await store.jobs.claim(one, job_id))

    await asyncio.gather(*(work(one, jobs[at::6]) for at, one in enumerate(connections)))
    assert await _campaign(store, connection, campaign_id) == ("COMPLETED", 60, 0, 60, 100)


@pytest.mark.parametrize("act", ["pause", "cancel"])
async def test_a_message_in_flight_is_settled_after_a_pause_or_a_cancel(connection, store, campaign_of, act):
    campaign_id, jobs = await campaign_of(2)
    claim = await store.jobs.claim(connection, jobs[0])
    await getattr(store.campaigns, act)(connection, campaign_id)
    assert (await store.jobs.sent(connection, claim)).status == "SENT"
    status = "PAUSED" if act == "pause" else "CANCELLED"
    assert await _campaign(store, connection, campaign_id) == (status, 1, 0, 2, 50)


@pytest.mark.parametrize("settle", ["sent", "failed", "requeue", "release", "failed_by_block"])
async def test_a_claim_that_was_swept_can_not_settle_any_more(connection, store, campaign_of, settle):
    campaign_id, [job_id, _] = await campaign_of(2)
    lost = await store.jobs.claim(connection, job_id)
    assert [one.status for one in await store.jobs.sweep(connection, 0)] == ["QUEUED"]
    more = ("error",) if settle in ("failed", "requeue", "failed_by_block") else ()
    assert await getattr(store.jobs, settle)(connection, lost, *more) is None  # queued
    second = await store.jobs.claim(connection, job_id)
    assert await getattr(store.jobs, settle)(connection, lost, *more) is None  # claimed by another
    assert await store.jobs.settle_sent(connection, [lost]) == []
    assert (second.attempt, second.idempotency_key) == (2, lost.idempotency_key)
    assert await _campaign(store, connection, campaign_id) == ("RUNNING", 0, 0, 2, 0)


async def test_a_sweep_leaves_young_claims_and_fails_those_without_an_attempt(connection, store, campaign_of):
    campaign_id, [first, second] = await campaign_of(2, retry_limit=0)
    await store.jobs.claim(connection, first)
    assert await store.jobs.sweep(connection, timedelta(minutes=15)) == []
    await connection.execute("UPDATE jobs SET started_at = now() - interval '1 hour' WHERE id = %s", [first])
    await store.jobs.claim(connection, second)
    [swept] = await store.jobs.sweep(connection, timedelta(minutes=15))
    assert (swept.job_id, swept.status) == (first, "FAILED")
    assert (await store.jobs.get(connection, first)).error_message == LOST
    assert await _campaign(store, connection, campaign_id) == ("RUNNING", 0, 1, 2, 50)


async def test_a_job_that_another_program_left_without_a_start_is_swept(connection, store, campaign_of):
    _, [job_id] = await campaign_of(1)
    await connection.execute("UPDATE jobs SET status = 'SENDING', created_at = NULL")
    assert [one.job_id for one in await store.jobs.sweep(connection, 60)] == [job_id]


async def test_a_sweep_leaves_the_claims_of_workers_that_need_longer(connection, store, campaign_of):
    _, [patient, quick] = await campaign_of(2)
    await store.jobs.claim(connection, patient, held=600)
    await store.jobs.claim(connection, quick)
    assert [one.job_id for one in await store.jobs.sweep(connection, 0)] == [quick]
    await connection.execute("UPDATE jobs SET claimed_until = now() - interval '1 second'")
    assert [one.job_id for one in await store.jobs.sweep(connection, 0)] == [patient]


async def test_a_sweep_does_not_wait_for_a_job_that_is_being_settled(connection, store, campaign_of, open_connection):
    _, [job_id] = await campaign_of(1)
    claim = await store.jobs.claim(connection, job_id)
    other = await open_connection()
    async with connection.transaction():
        await store.jobs.sent(connection, claim)
        assert await store.jobs.sweep(other, 0) == []
    assert (await store.jobs.get(connection, job_id)).status == "SENT"


async def test_a_block_ends_the_channels_queued_jobs_in_every_campaign(connection, store, campaign_of):
    first, jobs = await campaign_of(2)
    second, _ = await campaign_of(0)
    await connection.execute("UPDATE campaigns SET status = 'RUNNING', completed_at = NULL WHERE id = %s", [second])
    channel_id = (await store.jobs.get(connection, jobs[0])).channel_id
    batch_id = (await store.campaigns.get(connection, second)).batch_id
    await store.batches.add_channels(connection, batch_id, [channel_id])
    await store.jobs.create(connection, second)
    claim = await store.jobs.claim(connection, jobs[0])
    ended = await store.jobs.failed_by_block(connection, claim, "PEER_BLOCKED")
    channel = await store.channels.block(connection, channel_id, "PEER_BLOCKED")
    assert {(one.campaign_id, one.status) for one in ended} == {(first, "FAILED"), (second, "FAILED")}
    assert (channel.is_active, channel.last_error) == (False, "PEER_BLOCKED")
    assert await _campaign(store, connection, first) == ("RUNNING", 0, 1, 2, 50)
    assert await _campaign(store, connection, second) == ("COMPLETED", 0, 1, 1, 100)


async def test_a_block_changes_no_campaign_that_has_ended(connection, store, campaign_of):
    _, [job_id] = await campaign_of(1)
    ended, [other] = await campaign_of(1)
    channel_id = (await store.jobs.get(connection, job_id)).channel_id
    await connection.execute("UPDATE jobs SET channel_id = %s WHERE id = %s", [channel_id, other])
    await store.campaigns.cancel(connection, ended)
    claim = await store.jobs.claim(connection, job_id)
    assert [one.job_id for one in await store.jobs.failed_by_block(connection, claim, "PEER_BLOCKED")] == [job_id]
    assert await _campaign(store, connection, ended) == ("CANCELLED", 0, 0, 1, 0)


async def test_blocks_of_channels_in_the_same_campaigns_never_deadlock(connection, store, campaign_of, open_connection):
    first, jobs = await campaign_of(8)
    await connection.execute(
        "INSERT INTO campaigns (id, name, batch_id, template_id, status) "
        "SELECT prefix || i, 'more', batch_id, template_id, 'RUNNING' FROM campaigns, generate_series(1, 4) i, "
        "(VALUES ('a'), ('z')) AS made (prefix) WHERE campaigns.id = %s", [first],
    )  # fmt: skip
    for campaign in await store.campaigns.page(connection):
        await store.jobs.create(connection, campaign.id)
    connections = [await open_connection() for _ in jobs]
    claims = [await store.jobs.claim(connection, job_id) for job_id in jobs]
    ended = await asyncio.gather(
        *(
            store.jobs.failed_by_block(one, claim, "PEER_BLOCKED")
            for one, claim in zip(connections, claims, strict=True)
        )
    )
    assert [len(one) for one in ended] == [9] * 8
    assert {campaign.status for campaign in await store.campaigns.page(connection)} == {"COMPLETED"}


async def _feed(store, connection, campaign_id, limit=10):
    fed = await store.jobs.feed(connection, campaign_id, due_at=datetime.now(UTC), limit=limit)
    return [one.job_id for one in fed]


async def _check(store, connection, campaign_id, age=60, **limit):
    return {one.job_id: one.status for one in await store.jobs.check(connection, campaign_id, age, **limit)}


async def _let_pass(connection, seconds):
    """Moves the last look of the checks into the past."""
    await connection.execute("UPDATE campaign_feeding SET seen_at = seen_at - make_interval(secs => %s)", [seconds])


async def test_jobs_are_fed_in_windows_with_their_channels(connection, store, campaign_of):
    campaign_id, jobs = await campaign_of(5)
    await store.jobs.claim(connection, jobs[1])
    window = await store.jobs.feed(connection, campaign_id, due_at=datetime.now(UTC), limit=2)
    assert [one.job_id for one in window] + await _feed(store, connection, campaign_id) == [jobs[0], *jobs[2:]]
    assert all(one.username.startswith("@channel_1_") for one in window)
    assert await store.jobs.count_fed(connection, campaign_id, 100) == 4
    assert await store.jobs.count_fed(connection, campaign_id, 3) == 3
    assert await _feed(store, connection, campaign_id) == []


async def test_feeding_writes_no_row_of_a_job(connection, store, campaign_of):
    campaign_id, jobs = await campaign_of(3)
    versions = "SELECT id, xmin::text, ctid::text FROM jobs ORDER BY id"
    before = await (await connection.execute(versions)).fetchall()
    assert await _feed(store, connection, campaign_id) == jobs
    assert await (await connection.execute(versions)).fetchall() == before


async def test_a_job_that_the_queue_has_lost_is_fed_again(connection, store, campaign_of):
    campaign_id, [lost, sending, sent, later] = await campaign_of(4)
    await _feed(store, connection, campaign_id, limit=3)
    await store.jobs.claim(connection, sending)
    await store.jobs.sent(connection, await store.jobs.claim(connection, sent))
    assert await store.jobs.unchecked(connection, 60) == []
    await _let_pass(connection, 61)
    assert await store.jobs.unchecked(connection, 60) == [campaign_id]
    assert await _check(store, connection, campaign_id) == {}  # they were first seen now
    assert await store.jobs.unchecked(connection, 60) == []
    await _let_pass(connection, 61)
    assert await _check(store, connection, campaign_id, limit=1) == {lost: "QUEUED"}
    assert await _check(store, connection, campaign_id, limit=1) == {sending: "SENDING"}
    assert await _check(store, connection, campaign_id, limit=1) == {}
    assert await store.jobs.unchecked(connection, 60) == []
    assert await store.jobs.sweep(connection, 60) == []  # its claim is young
    assert [one.job_id for one in await store.jobs.sweep(connection, 0)] == [sending]
    assert await _feed(store, connection, campaign_id) == [lost, sending, later]


async def test_a_job_that_lost_its_own_place_in_the_queue_is_fed_again(connection, store, campaign_of):
    campaign_id, [first, second] = await campaign_of(2)
    await _feed(store, connection, campaign_id)
    await store.jobs.set_aside(connection, [first, second])
    past = datetime.now(UTC) - timedelta(minutes=20)
    await store.jobs.feed(connection, campaign_id, due_at=past, limit=1)
    assert await _feed(store, connection, campaign_id, limit=1) == [second]
    assert [one.job_id for one in await store.jobs.unfeed_overdue(connection, timedelta(minutes=15))] == [first]
    assert await _feed(store, connection, campaign_id) == [first]


async def test_a_job_that_another_program_resets_is_fed_again(connection, store, campaign_of):
    campaign_id, [first, _] = await campaign_of(2)
    await _feed(store, connection, campaign_id)
    await store.jobs.failed(connection, await store.jobs.claim(connection, first), "no")
    await connection.execute("UPDATE jobs SET status = 'QUEUED', failed_at = NULL WHERE id = %s", [first])
    assert await _feed(store, connection, campaign_id) == [first]
    await connection.execute("UPDATE jobs SET status = 'SENT', sent_at = now()")
    marks = await connection.execute("SELECT id FROM jobs WHERE due_at IS NOT NULL OR returned_at IS NOT NULL")
    assert await marks.fetchall() == []


async def test_a_job_that_another_program_adds_later_is_fed(connection, store, campaign_of):
    campaign_id, [job_id] = await campaign_of(1)
    await store.sending.set_prepared(connection, campaign_id)
    await _feed(store, connection, campaign_id)
    added = (await store.channels.add(connection, "@late_one")).id
    await connection.execute(
        "INSERT INTO jobs (id, campaign_id, channel_id) VALUES ('a', %s, %s)", [campaign_id, added]
    )
    assert job_id > "a"
    assert await _feed(store, connection, campaign_id) == ["a"]


async def test_a_refused_job_that_is_being_sent_is_seen_by_the_sweep(connection, store, campaign_of):
    campaign_id, [job_id] = await campaign_of(1)
    await _feed(store, connection, campaign_id)
    await store.jobs.claim(connection, job_id)
    assert await store.jobs.sweep(connection, 0) == []  # as long as no check and no worker came across it
    [aside] = await store.jobs.set_aside(connection, [job_id])
    assert aside.status == "SENDING"
    assert [one.job_id for one in await store.jobs.sweep(connection, 0)] == [job_id]


async def test_a_job_set_aside_is_fed_again_and_one_without_attempts_fails(connection, store, campaign_of):
    campaign_id, [first, second] = await campaign_of(2, retry_limit=0)
    await connection.execute("UPDATE jobs SET attempts = 1 WHERE id = %s", [second])
    assert await _feed(store, connection, campaign_id) == [first, second]
    aside = await store.jobs.set_aside(connection, [first, second])
    assert {one.job_id: one.status for one in aside} == {first: "QUEUED", second: "FAILED"}
    assert await _feed(store, connection, campaign_id) == [first]
    assert await _campaign(store, connection, campaign_id) == ("RUNNING", 0, 1, 2, 50)


async def test_many_claims_are_settled_by_one_statement(connection, store, campaign_of):
    campaign_id, jobs = await campaign_of(6)
    claims = await store.jobs.claim_many(connection, [*jobs[:5], "unknown"])
    assert sorted(claims) == sorted(jobs[:5])
    outcomes = [Outcome.SENT, Outcome.FAILED, Outcome.RETRY, Outcome.RELEASED]
    wanted = [
        Settlement(claims[job_id], outcome, None if outcome is Outcome.SENT else "no route", 60.0)
        for job_id, outcome in zip(jobs, outcomes, strict=False)
    ]
    lost = replace(claims[jobs[4]], attempt=7)
    settled = await store.jobs.settle(connection, [*wanted, Settlement(lost, Outcome.SENT)])
    assert {one: settled[one].status for one in settled} == dict(
        zip(jobs[:4], ["SENT", "FAILED", "QUEUED", "QUEUED"], strict=True)
    )
    stored = {job.id: job for job in await store.jobs.page(connection, campaign_id)}
    assert [stored[one].attempts for one in jobs] == [1, 1, 1, 0, 1, 0]
    assert [stored[one].due_at is not None for one in jobs] == [False, False, True, True, True, False]
    assert await _campaign(store, connection, campaign_id) == ("RUNNING", 1, 1, 6, 33)


async def test_claims_that_were_all_sent_are_settled_by_a_shorter_statement(connection, store, campaign_of):
    campaign_id, jobs = await campaign_of(6)
    claims = await store.jobs.claim_many(connection, jobs)
    channels = [claims[job_id].channel_id for job_id in jobs]
    await connection.execute("UPDATE channels SET error_count = 3 WHERE id = ANY(%s)", [[channels[0], channels[4]]])
    await connection.execute("UPDATE jobs SET due_at = now(), error_message = 'slow' WHERE id = %s", [jobs[1]])
    lost = [replace(claims[jobs[4]], attempt=7), replace(claims[jobs[5]], started_at="2020-01-01 00:00:00+00")]
    settled = await store.jobs.settle_sent(connection, [*lost, *(claims[job_id] for job_id in jobs[:4])])
    assert sorted(settled) == sorted(jobs[:4])
    stored = {job.id: job for job in await store.jobs.page(connection, campaign_id)}
    assert [stored[one].status for one in jobs] == ["SENT"] * 4 + ["SENDING"] * 2
    assert {(one.sent_at is not None, one.attempts, one.error_message, one.due_at) for one in
            (stored[job_id] for job_id in jobs[:4])} == {(True, 1, None, None)}  # fmt: skip
    found = await connection.execute("SELECT id FROM channels WHERE error_count > 0")
    assert await found.fetchall() == [(channels[4],)]
    assert await _campaign(store, connection, campaign_id) == ("RUNNING", 4, 0, 6, 66)
    assert await store.jobs.settle_sent(connection, [claims[job_id] for job_id in jobs[:4]]) == []  # settled already
    await store.jobs.settle_sent(connection, [claims[job_id] for job_id in jobs[4:]])
    assert await _campaign(store, connection, campaign_id) == ("COMPLETED", 6, 0, 6, 100)


async def test_a_purge_deletes_old_sent_jobs_and_keeps_the_counters(connection, store, campaign_of):
    campaign_id, jobs = await campaign_of(2)
    for job_id in jobs:
        await store.jobs.sent(connection, await store.jobs.claim(connection, job_id))
    await connection.execute("UPDATE jobs SET sent_at = now() - interval '91 days' WHERE id = %s", [jobs[0]])
    assert await store.jobs.purge(connection, datetime.now(UTC) - timedelta(days=90)) == 1
    with pytest.raises(NotFound, match="there is no job"):
        await store.jobs.get(connection, jobs[0])
    assert await _campaign(store, connection, campaign_id) == ("COMPLETED", 2, 0, 2, 100)


async def test_what_a_transaction_did_is_gone_if_it_is_rolled_back(connection, store, campaign_of):
    campaign_id, [job_id] = await campaign_of(1)
    claim = await store.jobs.claim(connection, job_id)
    async with connection.transaction(force_rollback=True):
        assert (await store.jobs.sent(connection, claim)).status == "SENT"
    assert await _campaign(store, connection, campaign_id) == ("RUNNING", 0, 0, 1, 0)
    assert (await store.jobs.sent(connection, claim)).status == "SENT"


async def test_delays_of_one_settlement_may_be_whole_numbers_and_others(connection, store, campaign_of):
    _, jobs = await campaign_of(3)
    claims = await store.jobs.claim_many(connection, jobs)
    settled = await store.jobs.settle(connection, [
        Settlement(claims[jobs[0]], Outcome.RELEASED, delay=12),
        Settlement(claims[jobs[1]], Outcome.RETRY, "later", 5.0),
        Settlement(claims[jobs[2]], Outcome.SENT),
    ])  # fmt: skip
    assert [settled[job].status for job in jobs] == ["QUEUED", "QUEUED", "SENT"]
