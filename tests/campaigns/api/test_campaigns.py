"""A campaign's life through the API."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest
from psycopg import sql

from campaigns.scripted_transport import ScriptedTransport
from jobwire.campaigns import CampaignStatus, CampaignWorker
from jobwire.campaigns.api import Role
from jobwire.campaigns.states import CAMPAIGN
from jobwire.campaigns.transports import Permanent


async def test_from_creation_to_the_report(*, as_role, new, unique, jobwire_postgres, schemas, database):
    viewer, operator, admin = map(as_role, Role)
    added = await admin.post("/templates", json={"name": unique, "content": "Dear {username}: {what}"})
    assert added.status_code == 201
    assert added.json() == {"id": added.json()["id"], "name": unique, "content": "Dear {username}: {what}",
                            "media_type": None, "media_url": None}  # fmt: skip
    made = await operator.post(
        "/campaigns", json=new(template=unique, params={"what": "Tea"}, mode="LIVE", rate=1_000_000, retry_limit=0)
    )
    assert made.status_code == 201
    campaign = made.json()
    assert made.headers["location"] == f"/campaigns/{campaign['id']}"
    assert (campaign["status"], campaign["sent"], campaign["delivery_rate"]) == ("QUEUED", 0, 1_000_000)
    assert (await viewer.get(made.headers["location"])).json() == campaign
    shown = (await viewer.get(f"/campaigns/{unique}/preview", params={"limit": 2})).json()
    assert len(shown) == 2
    assert {one["text"] for one in shown} < {f"Dear @news_{number}: Tea" for number in ("one", "two", "three")}
    [bad] = await (await database.execute("SELECT id FROM channels WHERE username = '@news_two'")).fetchone()
    transport = ScriptedTransport({bad: [Permanent("it is closed", reason="CHAT_CLOSED")]})
    async with CampaignWorker(jobwire_postgres.url, transport, **schemas) as worker:
        started = await operator.post(f"/campaigns/{unique}/start")
        assert (started.status_code, started.json()["status"]) == (200, "RUNNING")
        await worker.run_until_done(signals=False)
    ended = (await viewer.get(f"/campaigns/{unique}")).json()
    assert (ended["status"], ended["progress"], ended["sent"], ended["failed"]) == ("COMPLETED", 100, 2, 1)
    report = (await viewer.get(f"/campaigns/{unique}/report")).json()
    assert report["campaign"] == ended
    assert (report["counts"]["sent"], report["counts"]["attempts"]) == (2, 3)
    assert report["reasons"] == [{"reason": "CHAT_CLOSED", "count": 1, "example": "CHAT_CLOSED: it is closed"}]
    assert report["per_minute"] is None or report["per_minute"] > 0
    first = (await viewer.get(f"/campaigns/{unique}/deliveries", params={"limit": 2})).json()
    assert len(first["items"]) == 2
    second = (await viewer.get(f"/campaigns/{unique}/deliveries", params={"limit": 2, "after": first["next"]})).json()
    assert second["next"] is None
    became = {one["username"]: (one["status"], one["error_message"]) for one in first["items"] + second["items"]}
    assert became == {"@news_one": ("SENT", None), "@news_three": ("SENT", None),
                      "@news_two": ("FAILED", "CHAT_CLOSED: it is closed")}  # fmt: skip


ACTIONS = {
    "start": CampaignStatus.RUNNING,
    "pause": CampaignStatus.PAUSED,
    "resume": CampaignStatus.RUNNING,
    "cancel": CampaignStatus.CANCELLED,
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("status", CampaignStatus)
async def test_a_change_of_state_is_made_or_refused_with_both_states(*, api, new, database, status, action):
    campaign = (await api.post("/campaigns", json=new())).json()["id"]
    await database.execute("UPDATE campaigns SET status = %s WHERE id = %s", [status, campaign])
    given = await api.post(f"/campaigns/{campaign}/{action}")
    wanted = ACTIONS[action]
    # RUNNING follows on two states, each by an action of its own.
    legal = wanted in CAMPAIGN[status] and {"start": "QUEUED", "resume": "PAUSED"}.get(action, status) == status
    now = (await api.get(f"/campaigns/{campaign}")).json()["status"]
    if legal:
        assert (given.status_code, given.json()["status"], now) == (200, wanted, wanted)
    else:
        assert (given.status_code, now) == (409, status)
        assert {**given.json(), "error": ""} == {"error": "", "field": "status", "value": status, "wanted": wanted}
        words = f"is {status}: " if wanted in CAMPAIGN[status] else f"is {status} and can't become {wanted}"
        assert words in given.json()["error"]


@pytest.mark.parametrize("status", CampaignStatus)
async def test_the_rate_of_a_campaign_that_has_not_ended_is_changed(*, api, new, unique, database, status):
    campaign = (await api.post("/campaigns", json=new())).json()["id"]
    await database.execute("UPDATE campaigns SET status = %s WHERE id = %s", [status, campaign])
    given = await api.put(f"/campaigns/{campaign}/rate", json={"rate": 7})
    now = (await api.get(f"/campaigns/{campaign}")).json()["delivery_rate"]
    if CAMPAIGN[status]:
        assert (given.status_code, given.json()["delivery_rate"], now) == (200, 7, 7)
    else:
        assert (given.status_code, now) == (409, 60)
        error = f"campaign '{unique}' is {status}: it has ended and can't be changed any more"
        assert given.json() == {"error": error, "field": "status", "value": status}


async def test_of_many_starts_at_once_one_succeeds_and_is_named_in_the_queue(*, as_role, new, database, schemas):
    operator = as_role(Role.OPERATOR)
    campaign = (await operator.post("/campaigns", json=new())).json()["id"]
    given = await asyncio.gather(*(operator.post(f"/campaigns/{campaign}/start") for _ in range(8)))
    assert sorted(one.status_code for one in given) == [200] + [409] * 7
    queued = await database.execute(
        f"SELECT data FROM {schemas['queue_schema']}.job WHERE name = 'start-campaign' AND singleton_key = %s",
        [campaign],
    )
    assert await queued.fetchall() == [({"campaignId": campaign, "userId": "operator-of-tests"},)]


async def test_a_pause_keeps_its_reason(*, api, new, unique):
    await api.post("/campaigns", json=new())
    await api.post(f"/campaigns/{unique}/start")
    paused = (await api.post(f"/campaigns/{unique}/pause", json={"reason": "a typo ☕"})).json()
    assert (paused["status"], paused["paused_reason"], paused["paused_until"]) == ("PAUSED", "a typo ☕", None)
    assert (await api.post(f"/campaigns/{unique}/resume")).json()["paused_reason"] is None


async def test_lists_come_in_pages_and_by_state(*, api, new, unique, database):
    made = [(await api.post("/campaigns", json=new(name=f"{unique}-{number}"))).json()["id"] for number in range(3)]
    await api.post(f"/campaigns/{made[1]}/cancel")
    found, after = [], ""
    while after is not None:
        page = (await api.get("/campaigns", params={"limit": 2, "after": after})).json()
        assert 1 <= len(page["items"]) <= 2
        found += [one["id"] for one in page["items"]]
        after = page["next"]
    [count] = await (await database.execute("SELECT count(*) FROM campaigns")).fetchone()
    assert len(found) == len(set(found)) == count
    assert set(made) <= set(found)
    of_state = (await api.get("/campaigns", params={"status": "CANCELLED"})).json()["items"]
    assert {one["status"] for one in of_state} == {"CANCELLED"}
    assert made[1] in [one["id"] for one in of_state]


async def test_a_name_of_two_campaigns_is_refused_with_their_ids(*, api, new, unique, service):
    made = [(await api.post("/campaigns", json=new())).json()["id"]]
    assert (await api.post("/campaigns", json=new())).status_code == 422  # the name is taken
    other = (await api.post("/campaigns", json=new(name=f"{unique} again"))).json()["id"]
    async with service._connections.use() as connection:  # as an adopted database may have it
        await connection.execute(
            sql.SQL("UPDATE {}.campaigns SET name = %s WHERE id = %s").format(sql.Identifier(service.settings.schema)),
            [unique, other],
        )
    made.append(other)
    given = await api.get(f"/campaigns/{unique}")
    assert given.status_code == 409
    assert {**given.json(), "error": ""} == {"error": "", "field": "campaign", "value": unique, "ids": made}


async def test_a_campaign_is_found_by_a_name_of_any_letters(*, api, new, unique):
    name = f"{unique} frühling ☕ 100%?#&="
    campaign = (await api.post("/campaigns", json=new(name=name))).json()
    assert (await api.get(f"/campaigns/{quote(name)}")).json() == campaign
