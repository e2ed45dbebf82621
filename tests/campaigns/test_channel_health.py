"""The errors of a channel are counted as its messages are settled."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.campaigns import Outcome, Settlement
from jobwire.campaigns.store.campaigns import NewCampaign

FAILED = Outcome.FAILED
SENT = Outcome.SENT


@pytest.fixture
async def settle(connection, store, campaign_of):
    """Settles a message to the first channel of a batch, each time in a campaign of its own. Returns the channel."""
    first, _ = await campaign_of(1)
    batch_id = (await store.campaigns.get(connection, first)).batch_id
    [channel] = await store.channels.page(connection, batch_id=batch_id)
    template = (await store.templates.page(connection))[0]
    made = 0

    async def claims(count):
        nonlocal made
        found = []
        for _ in range(count):
            made += 1
            new = NewCampaign(f"again {made}", batch_id, template.id, {}, "LIVE", 60, 3)
            campaign = await store.campaigns.add(connection, new)
            await store.campaigns.start(connection, campaign.id)
            await store.jobs.create(connection, campaign.id)
            [job] = await store.jobs.page(connection, campaign.id)
            found.append(await store.jobs.claim(connection, job.id))
        return found

    async def act(*outcomes, error="timeout", by=()):
        wanted = [Settlement(claim, outcome, None if outcome is SENT else error)
                  for claim, outcome in zip(await claims(len(outcomes)), outcomes, strict=True)]  # fmt: skip
        if by:
            await asyncio.gather(*(store.jobs.settle(one, [it]) for one, it in zip(by, wanted, strict=True)))
        else:
            assert len(await store.jobs.settle(connection, wanted)) == len(wanted)
        found = await store.channels.get(connection, channel.id)
        return found.error_count, found.is_active, found.last_error

    return act


async def test_the_fifth_error_in_a_row_deactivates_the_channel(settle):
    assert [await settle(FAILED) for _ in range(4)] == [(number, True, "timeout") for number in (1, 2, 3, 4)]
    await settle(SENT)
    for number in (1, 2, 3, 4):
        assert await settle(FAILED, error="full") == (number, True, "full")


async def test_a_success_resets_the_errors_and_does_not_activate(connection, store, settle):
    waiting = [Outcome.RETRY, Outcome.RELEASED]
    assert await settle(*waiting) == (0, True, None)  # not the end of a message
    assert await settle(FAILED, FAILED, FAILED) == (3, True, "timeout")
    assert await settle(SENT) == (0, True, "timeout")
    assert await settle(FAILED, FAILED, FAILED, FAILED, FAILED, SENT) == (5, False, "timeout")
    [(inactive,)] = await (await connection.execute("SELECT id FROM channels WHERE NOT is_active")).fetchall()
    assert (await store.channels.activate(connection, inactive)).error_count == 0


async def test_errors_counted_by_many_at_once_all_count(settle, open_connection):
    connections = [await open_connection() for _ in range(5)]
    assert await settle(*[FAILED] * 5, by=connections) == (5, False, "timeout")
