"""The state machines, cell by cell: as tables, in the store, and between callers at the same moment."""

from __future__ import annotations

import asyncio
import doctest
import pickle

import pytest

from jobwire.campaigns import (
    CampaignStatus,
    Ended,
    IllegalTransition,
    JobStatus,
    NotFound,
    channel_names,
    ids,
    states,
    templates,
)
from jobwire.campaigns import database as database_module
from jobwire.campaigns.sending import deliver

CAMPAIGN = {
    "QUEUED": {"RUNNING", "CANCELLED"},
    "RUNNING": {"PAUSED", "COMPLETED", "FAILED", "CANCELLED"},
    "PAUSED": {"RUNNING", "COMPLETED", "CANCELLED"},
    "COMPLETED": set(),
    "FAILED": set(),
    "CANCELLED": set(),
}
JOB = {"QUEUED": {"SENDING", "FAILED"}, "SENDING": {"SENT", "FAILED", "QUEUED"}, "SENT": set(), "FAILED": set()}
ACTS = {"start": ("QUEUED",), "pause": ("RUNNING",), "resume": ("PAUSED",), "cancel": ("QUEUED", "RUNNING", "PAUSED"),
        "fail": ("RUNNING",)}  # fmt: skip
BECOMES = {"start": "RUNNING", "pause": "PAUSED", "resume": "RUNNING", "cancel": "CANCELLED", "fail": "FAILED"}


@pytest.mark.parametrize(
    "module", [states, ids, templates, channel_names, database_module, deliver], ids=lambda one: one.__name__
)
def test_the_examples_in_the_docstrings_hold(module):
    results = doctest.testmod(module)
    assert (results.failed, results.attempted > 0) == (0, True), results


@pytest.mark.parametrize("current", CampaignStatus)
@pytest.mark.parametrize("wanted", CampaignStatus)
def test_each_change_of_a_campaign_is_allowed_or_refused_with_both_states(current, wanted):
    if wanted in CAMPAIGN[current]:
        states.check_campaign("campaign 'x'", current, wanted)
        return
    with pytest.raises(IllegalTransition, match=f"campaign 'x' is {current} and can't become {wanted}: ") as refused:
        states.check_campaign("campaign 'x'", current, wanted)
    for possible in CAMPAIGN[current]:
        assert possible in str(refused.value)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize("current", JobStatus)
@pytest.mark.parametrize("wanted", JobStatus)
def test_each_change_of_a_job_is_allowed_or_refused_with_both_states(current, wanted):
    if wanted in JOB[current]:
        states.check_job("job 'x'", current, wanted)
        return
    with pytest.raises(IllegalTransition, match=f"job 'x' is {current} and can't become {wanted}: "):
        states.check_job("job 'x'", current, wanted)


BY_ANOTHER_ACT = {CampaignStatus.QUEUED: "start", CampaignStatus.PAUSED: "resume"}


@pytest.mark.parametrize("current", CampaignStatus)
@pytest.mark.parametrize("act", ACTS)
async def test_the_store_allows_and_refuses_the_same(connection, store, current, act):
    await connection.execute("INSERT INTO campaigns (id, name, status) VALUES ('x', 'x', %s)", [current.value])
    do = getattr(store.campaigns, act)
    more = ("broken",) if act == "fail" else ()
    if current in ACTS[act]:
        assert (await do(connection, "x", *more)).status == BECOMES[act]
        return
    refusal = f"campaign 'x' is {current} and can't become {BECOMES[act]}"
    if BECOMES[act] == CampaignStatus.RUNNING and current in BY_ANOTHER_ACT:
        refusal = f"campaign 'x' is {current}: {BY_ANOTHER_ACT[current]} it instead"
    with pytest.raises(IllegalTransition, match=refusal):
        await do(connection, "x", *more)
    assert (await store.campaigns.get(connection, "x")).status == current


async def test_a_change_of_a_campaign_that_does_not_exist_is_refused(connection, store):
    with pytest.raises(NotFound, match="there is no campaign 'x'"):
        await store.campaigns.start(connection, "x")


async def test_of_ten_starts_at_once_one_succeeds(connection, store, open_connection):
    await connection.execute("INSERT INTO campaigns (id, name) VALUES ('x', 'x')")
    connections = [await open_connection() for _ in range(10)]
    results = await asyncio.gather(
        *(store.campaigns.start(one, "x") for one in connections), return_exceptions=True
    )  # fmt: skip
    refused = [result for result in results if isinstance(result, IllegalTransition)]
    assert len(refused) == 9, results
    assert all("is RUNNING and can't become RUNNING" in str(one) for one in refused)


@pytest.mark.parametrize("pause_first", [True, False])
async def test_a_pause_waits_for_the_settling_of_the_last_job(connection, store, another, campaign_of, pause_first):
    campaign_id, [job_id] = await campaign_of(1)
    claim = await store.jobs.claim(connection, job_id)
    other, eventually_waits = another
    async with connection.transaction():
        if pause_first:
            await store.campaigns.pause(connection, campaign_id)
            second = asyncio.create_task(store.jobs.sent(other, claim))
        else:
            await store.jobs.sent(connection, claim)
            second = asyncio.create_task(store.campaigns.pause(other, campaign_id))
        await eventually_waits(other)
    if pause_first:
        assert (await second).status == "SENT"
    else:
        with pytest.raises(IllegalTransition, match="is COMPLETED and can't become PAUSED"):
            await second
    campaign = await store.campaigns.get(connection, campaign_id)
    assert (campaign.status, campaign.progress, campaign.sent, campaign.paused_until) == ("COMPLETED", 100, 1, None)


@pytest.mark.parametrize("first", ["cancel", "resume"])
async def test_a_cancel_and_a_resume_at_once_end_cancelled(connection, store, another, first):
    await connection.execute("INSERT INTO campaigns (id, name, status) VALUES ('x', 'x', 'PAUSED')")
    second = "resume" if first == "cancel" else "cancel"
    other, eventually_waits = another
    async with connection.transaction():
        await getattr(store.campaigns, first)(connection, "x")
        waiting = asyncio.create_task(getattr(store.campaigns, second)(other, "x"))
        await eventually_waits(other)
    if second == "resume":
        with pytest.raises(IllegalTransition, match="is CANCELLED and can't become RUNNING"):
            await waiting
    else:
        await waiting
    assert (await store.campaigns.get(connection, "x")).status == "CANCELLED"


async def test_a_flood_wait_pauses_for_a_time_and_only_grows(connection, store):
    await connection.execute("INSERT INTO campaigns (id, name, status) VALUES ('x', 'x', 'RUNNING')")
    first = await store.campaigns.wait_for_flood(connection, "x", 600)
    assert (first.status, first.paused_reason) == ("PAUSED", "FLOOD_WAIT")
    assert (await store.campaigns.wait_for_flood(connection, "x", 5)).paused_until == first.paused_until
    assert (await store.campaigns.wait_for_flood(connection, "x", 6000)).paused_until > first.paused_until
    assert await store.campaigns.resume_due(connection) == []
    assert await store.campaigns.next_resume(connection) is not None
    await connection.execute("UPDATE campaigns SET paused_until = now() - interval '1 second'")
    [resumed] = await store.campaigns.resume_due(connection)
    assert (resumed.status, resumed.paused_until, resumed.paused_reason) == ("RUNNING", None, None)
    assert await store.campaigns.resume_due(connection) == []


async def test_a_person_who_pauses_during_a_flood_wait_keeps_it_paused(connection, store):
    await connection.execute("INSERT INTO campaigns (id, name, status) VALUES ('x', 'x', 'RUNNING')")
    await store.campaigns.wait_for_flood(connection, "x", 0)
    paused = await store.campaigns.pause(connection, "x", "lunch")
    assert (paused.status, paused.paused_until, paused.paused_reason) == ("PAUSED", None, "lunch")
    assert await store.campaigns.resume_due(connection) == []
    assert await store.campaigns.wait_for_flood(connection, "x", 0) is None
    assert (await store.campaigns.resume(connection, "x")).status == "RUNNING"


async def test_the_rate_changes_until_the_campaign_has_ended(connection, store):
    await connection.execute("INSERT INTO campaigns (id, name, status) VALUES ('x', 'x', 'RUNNING')")
    assert (await store.campaigns.set_rate(connection, "x", 600)).delivery_rate == 600
    with pytest.raises(Exception, match="rate: must be at least 1"):
        await store.campaigns.set_rate(connection, "x", 0)
    await store.campaigns.cancel(connection, "x")
    with pytest.raises(Ended, match="campaign 'x' is CANCELLED: it has ended"):
        await store.campaigns.set_rate(connection, "x", 6)
