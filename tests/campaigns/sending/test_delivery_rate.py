"""Slots of the delivery rate: however many ask, and whatever is changed meanwhile, they are a step apart."""

from __future__ import annotations

import asyncio
import time

import pytest

from awaiting import eventually
from jobwire.campaigns.connections import Connections
from jobwire.campaigns.sending.delivery_rate import LATEST, DeliveryRate
from jobwire.campaigns.store.sending import CREDIT, MINUTE
from jobwire.campaigns.transports import Receipt


@pytest.fixture
async def rates(service):
    """Three workers' views of the delivery rates."""
    async with Connections(service.settings, most=6) as connections:
        yield [DeliveryRate(service._store, connections) for _ in range(3)]


async def test_three_workers_share_the_slots_of_a_campaign(rates, campaign, service):
    made = await campaign(1, rate=6000)
    await service.start(made.id)
    began = time.monotonic()
    await asyncio.gather(*(rate.slot(made.id) for rate in rates for _ in range(60)))
    assert time.monotonic() - began >= 179 * MINUTE / 6000 - CREDIT  # a bound from below holds on any machine


async def test_a_slot_that_is_far_away_is_not_waited_for(rates, campaign, service):
    made = await campaign(1, rate=1)
    await service.start(made.id)
    assert await rates[0].slot(made.id)
    assert not await rates[1].slot(made.id)
    await service.set_rate(made.id, 60_000)
    assert await rates[1].slot(made.id)  # a step of the new rate after the last message
    await service.set_rate(made.id, 1)
    assert not await rates[2].slot(made.id)


async def test_of_messages_that_come_together_those_get_a_slot_whose_time_is_near(rates, campaign, service):
    made = await campaign(1, rate=60)
    await service.start(made.id)
    found = await asyncio.gather(*(rates[0].slot(made.id) for _ in range(40)))
    assert 1 <= sum(one is not None for one in found) < 40


async def test_campaigns_have_their_own_slots(rates, campaign, service):
    slow, quick = await campaign(1, rate=1), await campaign(1, rate=6000)
    await rates[0].slot(slow.id)
    await asyncio.gather(*(rates[0].slot(quick.id) for _ in range(20)))


async def test_a_campaign_that_is_gone_holds_nothing_up(rates, service):
    assert await rates[0].slot("unknown")


class Timed:
    """Notes when messages are sent, one at a time."""

    def __init__(self) -> None:
        self.times: list[float] = []

    async def send(self, message):
        self.times.append(time.monotonic())
        return Receipt()


class TimedTogether(Timed):
    """Takes many messages in one call."""

    async def send_many(self, messages):
        return [await self.send(message) for message in messages]


@pytest.mark.parametrize("transport", [Timed(), TimedTogether()], ids=["one by one", "together"])
async def test_after_a_stall_of_the_database_no_slot_is_made_up_for(service, campaign, working, database, transport):
    made = await campaign(100, rate=600)
    await service.start(made.id)
    async with working(transport):
        await eventually(lambda: len(transport.times) > 1)
        async with database.transaction():
            await database.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
            # Messages reserve slots, and wait for their claims until the slots are long over.
            slots = "SELECT next_at > now() + interval '2.5 seconds' FROM campaign_sending"
            await eventually(lambda: _is_true(database, slots))
        unlocked = time.monotonic()
        await eventually(lambda: time.monotonic() > unlocked + 1)
        found = await database.execute("SELECT max(attempts) FROM jobs WHERE status = 'QUEUED'")
    sent = sum(unlocked <= one < unlocked + 1 for one in transport.times)
    assert 1 <= sent <= (1 + CREDIT + LATEST) * 600 / MINUTE + 1
    assert await found.fetchone() == (0,)  # those that were held back have spent no attempt


async def _is_true(database, query):
    return (await (await database.execute(query)).fetchone())[0]


@pytest.mark.parametrize("rate", [1, 2, 7, 20, 60, 600, 6000, 1_000_000])
def test_no_minute_has_more_slots_than_the_rate(rate):
    # Slots are at least a step apart, time that was not used is credited for a moment, and a slot is used late at most
    # for another.
    step = MINUTE / rate
    most = int((60 + CREDIT + LATEST) / step) + 1
    assert most <= rate
    assert most >= rate * 0.98 - 1
