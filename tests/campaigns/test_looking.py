"""What operators look at: the newest campaigns, reasons of failures, channels in trouble. Each read has a bound."""

from __future__ import annotations

from jobwire.campaigns import Outcome, Settlement
from jobwire.campaigns.channel_health import health_of
from jobwire.campaigns.report import failure_reasons


async def _fail(connection, store, job_ids, error):
    claims = await store.jobs.claim_many(connection, job_ids)
    await store.jobs.settle(connection, [Settlement(claim, Outcome.FAILED, error) for claim in claims.values()])


async def test_the_newest_campaigns_come_first_and_those_that_have_ended_can_be_left_out(
    connection, store, campaign_of
):
    first, second, third = [(await campaign_of(1))[0] for _ in range(3)]
    await store.campaigns.cancel(connection, second)

    async def ids(**options):
        return [campaign.id for campaign in await store.campaigns.newest(connection, **options)]

    assert await ids() == [third, second, first]
    assert await ids(unfinished=True) == [third, first]
    assert await ids(before=second) == await ids(unfinished=True, before=third) == [first]
    assert await ids(limit=1) == [third]


async def test_failures_are_counted_by_reason_up_to_a_bound(connection, store, campaign_of):
    campaign, jobs = await campaign_of(5)
    await _fail(connection, store, jobs[:3], "CHAT_WRITE_FORBIDDEN: not a member")
    await _fail(connection, store, jobs[3:4], "no code")
    found = await failure_reasons(connection, store, campaign, most=100)
    assert [(one.reason, one.count) for one in found] == [("CHAT_WRITE_FORBIDDEN", 3), ("OTHER", 1)]
    assert sum(one.count for one in await failure_reasons(connection, store, campaign, most=2)) == 2


async def test_channels_in_trouble_are_those_of_the_batch_and_inactive_ones_come_first(connection, store, campaign_of):
    campaign, jobs = await campaign_of(4)
    other, others = await campaign_of(1)
    await _fail(connection, store, [*jobs[:2], *others], "TIMEOUT: no answer")
    listed = [job.channel_id for job in await store.jobs.page(connection, campaign)]
    await store.channels.block(connection, listed[2], "blocked")
    everything = await health_of(connection, store, batch=None, limit=20)
    assert (everything.inactive, everything.failing, everything.exact) == (1, 3, True)
    batch = (await store.campaigns.get(connection, campaign)).batch_id
    found = await health_of(connection, store, batch=batch, limit=2)
    assert (found.inactive, found.failing) == (1, 2)
    assert found.channels[0].id == listed[2]
    assert len(found.channels) == 2
    assert other != campaign
