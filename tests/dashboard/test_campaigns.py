"""The pages of campaigns, over a real database: figures, actions, and who may take them."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest

from awaiting import eventually as is_true
from campaigns.scripted_transport import ScriptedTransport
from dashboard.browsing import ORIGIN, Browser
from dashboard.hostile_texts import TEXTS
from dashboard.test_hostile_texts import assert_only_text
from jobwire.campaigns import CampaignService, CampaignStatus, connect
from jobwire.campaigns.transports import Permanent
from jobwire.dashboard import Token, Tokens, dashboard
from jobwire.dashboard import campaigns as campaigns_module
from jobwire.dashboard.campaigns import CampaignsDatabase
from jobwire.errors import StoreUnavailable

VIEWER, OPERATOR = "v" * 24, "o" * 24


@pytest.fixture
async def browse(campaign_service):
    """Makes a browser of a dashboard over the campaigns of the test."""
    opened = []

    def make(token=None, **options):
        app = dashboard({"news": campaign_service}, **options)
        browser = Browser(app, {"Authorization": f"Bearer {token}"} if token else {})
        opened.append((app, browser))
        return browser

    yield make
    for app, browser in opened:
        await browser.close()
        await app.state.board.close()


async def test_a_look_follows_at_once_when_something_was_changed(monkeypatch):
    service = CampaignService("postgresql://127.0.0.1:1/nothing")
    database = CampaignsDatabase("news", service, timeout=3, optional=False, owned=False)
    looks: asyncio.Queue[None] = asyncio.Queue()

    async def attempt():
        looks.put_nowait(None)

    monkeypatch.setattr(database, "_attempt", attempt)
    monkeypatch.setattr(campaigns_module, "_SHARE", 10**9)  # any look is followed by the longest break
    database.start()
    try:
        async with asyncio.timeout(10):
            await looks.get()
            database.outdate()
            await looks.get()
    finally:
        await database.close()


async def test_a_database_that_does_not_answer_is_soon_asked_again(monkeypatch):
    service = CampaignService("postgresql://127.0.0.1:1/nothing")
    database = CampaignsDatabase("news", service, timeout=3, optional=False, owned=False)
    asked: asyncio.Queue[None] = asyncio.Queue()

    async def check():
        asked.put_nowait(None)
        raise StoreUnavailable("no answer")

    monkeypatch.setattr(service, "check", check)
    monkeypatch.setattr(campaigns_module, "_SHARE", 10**9)  # any look is followed by the longest break
    monkeypatch.setattr(campaigns_module, "_ASK_AGAIN", 0.01)
    monkeypatch.setattr(campaigns_module, "_UNWATCHED_EVERY", 0.01)
    database.start()
    try:
        async with asyncio.timeout(10):
            await asked.get()
            await asked.get()
    finally:
        await database.close()


async def _page(browser, campaign):
    return await browser.open("campaign", queue=None, store="news", id=campaign.id)


async def test_a_campaign_is_started_after_its_messages_were_shown(browse, campaign_service, new_campaign, caplog):
    caplog.set_level("INFO", "jobwire.dashboard.audit")
    campaign = await new_campaign(3, content="Hello {username}, meet us")
    browser = browse(allow_actions=True)
    listed = await browser.open("campaigns", queue=None)
    assert (listed.title, "not started" in listed.text) == ("No campaign runs", True)
    page = await _page(browser, campaign)
    assert page.title == f"{campaign.name} is not started"
    shown = await browser.send(page, page.form("campaign-preview", "start"), "start")
    assert shown.title == f"Start {campaign.name}?"
    assert "3 messages to active channels" in shown.text
    assert "Hello @channel1_1" in shown.text
    assert (await campaign_service.status(campaign.id)).status is CampaignStatus.QUEUED
    after = await browser.send(shown, shown.form("campaign-act"), "start")
    assert "The campaign is started." in after.text
    assert (await campaign_service.status(campaign.id)).status is CampaignStatus.RUNNING
    again = await browser.send(shown, shown.form("campaign-act"), "start")
    assert (again.status, "can't become RUNNING" in again.title) == (409, True)
    done, refused = [one.getMessage() for one in caplog.records if one.name == "jobwire.dashboard.audit"]
    where = f"store 'news', campaign {campaign.name!r} ({campaign.id})"
    assert (done, refused) == (
        f"'anyone' (admin): start, {where}: done",
        f"'anyone' (admin): start, {where}: refused",
    )


async def test_a_campaign_is_paused_resumed_and_cancelled(browse, campaign_service, new_campaign):
    campaign = await new_campaign(2)
    await campaign_service.start(campaign.id)
    browser = browse(allow_actions=True)
    page = await _page(browser, campaign)
    page = await browser.send(page, page.form("campaign-act", "pause"), "pause")
    assert page.title.startswith(f"{campaign.name} is paused")
    page = await browser.send(page, page.form("campaign-act", "resume"), "resume")
    assert (await campaign_service.status(campaign.id)).status is CampaignStatus.RUNNING
    shown = await browser.send(page, page.form("campaign-preview", "cancel"), "cancel")
    unconfirmed = [("form_token", dict(shown.form("campaign-act").fields)["form_token"]), ("store", "news")]
    refused = await browser.post(f"{ORIGIN}/campaign-act", [*unconfirmed, ("id", campaign.id), ("verb", "cancel")])
    assert (refused.status, "needs a confirmation" in refused.title) == (400, True)
    page = await browser.send(shown, shown.form("campaign-act"), "cancel")
    assert page.title.startswith(f"{campaign.name} is cancelled")
    assert not page.has_form("campaign-act")
    assert not page.has_form("campaign-preview")


async def test_a_viewer_sees_campaigns_and_can_not_act(browse, campaign_service, new_campaign):
    campaign = await new_campaign(1)
    auth = Tokens([Token("vera", "viewer", VIEWER), Token("olga", "operator", OPERATOR)])
    viewer = browse(VIEWER, allow_actions=True, auth=auth)
    page = await _page(viewer, campaign)
    assert not any(form.method == "post" for form in page.forms)
    operator = browse(OPERATOR, allow_actions=True, auth=auth)
    form = (await _page(operator, campaign)).form("campaign-preview", "start")
    theirs = await viewer.send(page, form, "start")  # the token of another's form
    assert theirs.status == 403
    assert (await campaign_service.status(campaign.id)).status is CampaignStatus.QUEUED


async def test_failures_are_shown_by_reason_and_channels_by_their_health(
    browse, campaign_service, new_campaign, campaign_working, eventually
):
    campaign = await new_campaign(12)
    reason = Permanent(f"token=t-17 {TEXTS[0]}", reason="CHAT_WRITE_FORBIDDEN")
    await campaign_service.start(campaign.id)
    async with campaign_working(ScriptedTransport({f"ch1_{number}": [reason] for number in range(1, 4)})):
        await eventually(lambda: _is(campaign_service, campaign, CampaignStatus.COMPLETED))
    browser = browse()
    page = await _page(browser, campaign)
    assert page.title == f"{campaign.name} is completed: 9 messages sent, 3 messages failed"
    assert "CHAT_WRITE_FORBIDDEN" in page.text
    assert "the last message to 3 channels failed" in page.text
    assert "t-17" not in page.html
    listed = await browser.open("campaigns", queue=None)
    assert "completed" in listed.text
    overview = await browser.open()
    assert overview.status == 200
    assert_only_text([page, listed, overview])


async def _is(service, campaign, status):
    return (await service.status(campaign.id)).status is status


async def test_hostile_names_of_campaigns_and_channels_are_shown_as_text(
    browse, campaign_service, campaign_database, new_campaign
):
    campaign = await new_campaign(1)
    for table, column in (("campaigns", "name"), ("campaigns", "description"), ("channels", "category")):
        await campaign_database.execute(f"UPDATE {table} SET {column} = %s", [" ".join(TEXTS)])
    await campaign_database.execute("UPDATE channels SET error_count = 1, last_error = %s", [" ".join(TEXTS)])
    await campaign_database.execute("UPDATE campaigns SET error = %s, status = 'FAILED'", [" ".join(TEXTS)])
    browser = browse(allow_actions=True)
    pages = [await browser.open(), await browser.open("campaigns", queue=None), await _page(browser, campaign)]
    assert_only_text(pages)
    assert all("pwned(0)" in page.text for page in pages)


async def test_campaigns_in_the_database_of_a_store_are_found(jobwire_postgres, unique):
    async with await connect(jobwire_postgres.url) as connection:
        await connection.execute(f"CREATE DATABASE {unique}")
    url = urlsplit(jobwire_postgres.url)._replace(path=f"/{unique}").geturl()
    async with CampaignService(url) as campaigns:
        await campaigns.init()
        app = dashboard({"shop": campaigns._queues.url, "other": f"memory:{unique}"})
        browser = Browser(app, {})
        try:
            await browser.open()
            await is_true(lambda: bool(app.state.board.campaigns))
            overview = await browser.open()
            assert overview.title == "All is well: 2 queues in 2 stores, 0 campaigns under way"
            assert "Campaigns" in overview.links
            health = (await browser.client.get("/health")).json()
            assert (health["status"], health["campaigns"]["shop"]["status"]) == ("ok", "ok")
        finally:
            await browser.close()
            await app.state.board.close()


async def test_a_database_without_tables_states_what_to_do(jobwire_postgres, unique):
    app = dashboard({"news": f"{jobwire_postgres.url}?schema={unique}"})
    browser = Browser(app, {})
    try:
        page = await browser.open("campaigns", queue=None)
        assert "jobwire campaign init" in page.text
        assert (await browser.open("campaign", queue=None, store="shop", id="1")).status == 404
    finally:
        await browser.close()
        await app.state.board.close()
