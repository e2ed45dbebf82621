"""Every rule of the data is refused by the API with its field, value and rule, and nothing is written."""

from __future__ import annotations

import json

import pytest

TEMPLATES = "/templates"
CAMPAIGNS = "/campaigns"
LONG = "x" * 4097


@pytest.fixture
async def counted(database):
    """Returns how many rows there are that a request could add."""

    async def count():
        tables = ("campaigns", "templates", "channels", "batches", "users")
        query = " UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables)
        return await (await database.execute(query)).fetchall()

    return count


@pytest.mark.parametrize(
    ("changes", "field", "value", "rule"),
    [
        ({"rate": 0}, "rate", 0, "must be at least 1"),
        ({"rate": 2**31}, "rate", 2**31, "must be at most 2147483647"),
        ({"rate": "60"}, "rate", "60", "must be an integer"),
        ({"rate": 1.5}, "rate", "1.5", "must be an integer"),
        ({"rate": True}, "rate", True, "must be an integer"),
        ({"rate": None}, "rate", None, "must be an integer"),
        ({"rate": 10**30}, "rate", str(10**30), "must be at most 2147483647"),
        ({"retry_limit": -1}, "retry_limit", -1, "must be at least 0"),
        ({"retry_limit": 1001}, "retry_limit", 1001, "must be at most 1000"),
        ({"mode": "DRY"}, "mode", "DRY", "must be TEST or LIVE"),
        ({"mode": "live"}, "mode", "live", "must be TEST or LIVE; did you mean LIVE?"),
        ({"mode": 1}, "mode", 1, "must be a string"),
        ({"name": ""}, "name", "", "must not be empty"),
        ({"name": "x" * 201}, "name", None, "must have at most 200 characters"),
        ({"name": "a\nb"}, "name", "a\nb", "must not contain control characters"),
        ({"name": "a\0b"}, "name", "a\0b", "must not contain NUL characters"),
        ({"name": "a\ud800"}, "name", "a\ud800", "must be valid Unicode (it has a lone surrogate)"),
        ({"description": "a\0b"}, "description", "a\0b", "must not contain NUL characters"),
        ({"batch": "a\0b"}, "batch", "a\0b", "must not contain NUL characters"),
        ({"params": {}}, "params.product", None, "is missing: the template uses it"),
        ({"params": {"prodct": "Tea"}}, "params.prodct", "Tea",
         "is not a parameter of the template; did you mean product?"),
        ({"params": {"product": "Tea", "username": "x"}}, "params.username", "x",
         "is filled in from each channel and can't be given"),
        ({"params": {"product": ["Tea"]}}, "params.product", "['Tea']", "must be a text or a number"),
        ({"params": {"product": None}}, "params.product", None, "must be a text or a number"),
        ({"params": {"product": "a\0b"}}, "params.product", "a\0b", "must not contain NUL characters"),
        ({"params": {"product": "a\ud800"}}, "params.product", "a\ud800",
         "must be valid Unicode (it has a lone surrogate)"),
        ({"params": "Tea"}, "params", "Tea", "must be a JSON object"),
        ({"params": {"product": "x" * 4096}}, "content", "Hello {username}, meet {product}!",
         "would be a text of 4,110 characters; Telegram takes at most 4,096"),
        ({"status": "RUNNING"}, "status", "RUNNING", None),
        ({"progress": 100}, "progress", 100, None),
        ({"retry_limt": 3}, "retry_limt", 3, "is not a field of a campaign; did you mean retry_limit?"),
    ],
    ids=lambda value: ascii(value)[:40] if isinstance(value, dict) else "",
)  # fmt: skip
async def test_a_campaign(*, api, new, counted, changes, field, value, rule):
    before = await counted()
    given = await api.post(CAMPAIGNS, content=json.dumps(new(**changes)), headers={"Content-Type": "application/json"})
    body = given.json()
    assert given.status_code == 422
    assert body["field"] == field
    assert rule is None or body["rule"] == rule
    assert value is None or body["value"] == value
    assert body["error"].startswith(f"{field}: {body['rule']} (got ")
    assert await counted() == before


@pytest.mark.parametrize(
    ("changes", "field", "rule"),
    [
        ({"name": ""}, "name", "must not be empty"),
        ({"content": ""}, "content", "must not be empty without media"),
        ({"content": "a {product"}, "content", "has a single { at character 3: write {{ for a brace"),
        ({"content": "a } b"}, "content", "has a single } at character 3: write }} for a brace"),
        ({"content": "{a b}"}, "content", "has {a b} at character 1, which is not the name of a parameter"),
        ({"content": LONG}, "content", "would be a text of 4,097 characters; Telegram takes at most 4,096"),
        ({"content": "x" * 1025, "media_type": "PHOTO", "media_url": "https://example.com/a.jpg"}, "content",
         "would be a caption of media of 1,025 characters; Telegram takes at most 1,024"),
        ({"content": "a\0b"}, "content", "must not contain NUL characters"),
        ({"media_type": "PHOTO"}, "media_url", "is needed: a media type and a media URL are given together"),
        ({"media_url": "https://example.com/a"}, "media_type",
         "is needed: a media type and a media URL are given together"),
        ({"media_type": "GIF", "media_url": "https://example.com/a"}, "media_type",
         "must be one of PHOTO, VIDEO, DOCUMENT"),
        ({"media_type": "PHOTO", "media_url": "file:///etc/passwd"}, "media_url", "must be an http or https URL"),
        ({"media_type": "PHOTO", "media_url": "https://\0"}, "media_url", "must not contain NUL characters"),
        ({"contents": "x"}, "contents", "is not a field of a template; did you mean content?"),
    ],
    ids=range(14),
)  # fmt: skip
async def test_a_template(*, api, counted, unique, changes, field, rule):
    before = await counted()
    given = await api.post(TEMPLATES, json={"name": unique, "content": "x"} | changes)
    assert (given.status_code, given.json()["field"], given.json()["rule"]) == (422, field, rule)
    assert await counted() == before


@pytest.mark.parametrize(
    ("changes", "field", "error"),
    [
        ({"batch": "nwes"}, "batch", "there is no batch 'nwes'; did you mean 'news'?"),
        ({"template": "helo"}, "template", "there is no template 'helo'; did you mean 'hello'?"),
        ({"created_by": "ann"}, "user", "there is no user 'ann'"),
    ],
)
async def test_a_campaign_of_things_that_do_not_exist(*, api, new, counted, changes, field, error):
    before = await counted()
    given = await api.post(CAMPAIGNS, json=new(**changes))
    assert (given.status_code, given.json()) == (
        404, {"error": error, "field": field, "value": next(iter(changes.values()))},
    )  # fmt: skip
    assert await counted() == before


async def test_a_template_of_categories_needs_one_of_every_channel(*, api, new, unique, database):
    await api.post(TEMPLATES, json={"name": unique, "content": "On {category}"})
    content = {"content": "username\n@without_one\n", "headers": {"Content-Type": "text/csv"}}
    await api.post("/channels/import", params={"batch": unique}, **content)
    given = await api.post(CAMPAIGNS, json=new(template=unique, batch=unique, params={}))
    assert (given.status_code, given.json()["field"]) == (422, "params.category")
    assert given.json()["rule"] == f"is missing: 1 active channels of batch '{unique}' have none"


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'"x"', b"5"])
async def test_a_body_that_is_not_an_object(api, body):
    given = await api.post(CAMPAIGNS, content=body, headers={"Content-Type": "application/json"})
    assert (given.status_code, given.json()["field"]) == (422, "body")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"name": ', "body: is not JSON: Expecting value at character 10"),
        (b'{"name": "\xff"}', "body: can't be read as JSON"),
        (b'{"rate": ' + b"9" * 5000 + b"}", "body: can't be read as JSON"),
        (b"[" * 100_000, "body: can't be read as JSON"),
    ],
    ids=range(4),
)
async def test_a_body_that_is_not_json(api, body, error):
    given = await api.post(CAMPAIGNS, content=body, headers={"Content-Type": "application/json"})
    assert (given.status_code, given.json()["field"], given.json()["error"]) == (422, "body", error)


async def test_a_number_that_is_not_finite(api, new):
    body = json.dumps(new(params={"product": float("nan")}))
    given = await api.post(CAMPAIGNS, content=body, headers={"Content-Type": "application/json"})
    assert (given.status_code, given.json()["rule"], given.json()["value"]) == (422, "must be a finite number", "nan")


async def test_a_form_of_a_web_page_is_not_taken_for_json(api, new):
    given = await api.post(CAMPAIGNS, content=b'{"name": "x"}', headers={"Content-Type": "text/plain"})
    assert (given.status_code, given.json()["field"]) == (422, "body")
    assert given.json()["rule"] == "must be a JSON object, sent with the content type application/json"


@pytest.mark.parametrize("rate", [0, -1, 2**31, "1", None, 1.5])
async def test_a_rate(api, new, unique, rate):
    await api.post(CAMPAIGNS, json=new())
    given = await api.put(f"/campaigns/{unique}/rate", json={"rate": rate})
    assert (given.status_code, given.json()["field"]) == (422, "rate")
    assert (await api.get(f"/campaigns/{unique}")).json()["delivery_rate"] == 60


@pytest.mark.parametrize(
    ("path", "field", "rule"),
    [
        ("/campaigns?limit=0", "limit", "must be from 1 to 1,000"),
        ("/campaigns?limit=1001", "limit", "must be from 1 to 1,000"),
        ("/campaigns?limit=ten", "limit", "must be an integer"),
        ("/campaigns?limit=" + "9" * 30, "limit", "must be from 1 to 1,000"),
        ("/campaigns?status=runing", "status",
         "must be one of QUEUED, RUNNING, PAUSED, COMPLETED, FAILED, CANCELLED; did you mean RUNNING?"),
        ("/campaigns?stauts=RUNNING", "stauts", "is not a field of this list; did you mean status?"),
        ("/campaigns?after=%00", "after", "must not contain NUL characters"),
        ("/campaigns/%00", "campaign", "must not contain NUL characters"),
        ("/campaigns/spring/deliveries?limit=0", "limit", "must be from 1 to 1,000"),
        ("/campaigns/spring/preview?limit=101", "limit", "must be from 1 to 100"),
        ("/channels?active=maybe", "active", "must be true or false"),
        ("/channels?batch=%00", "batch", "must not contain NUL characters"),
        ("/templates?limit=0", "limit", "must be from 1 to 1,000"),
        ("/batches?limit=0", "limit", "must be from 1 to 1,000"),
    ],
    ids=range(14),
)  # fmt: skip
async def test_a_question(api, path, field, rule):
    given = await api.get(path)
    assert (given.status_code, given.json()["field"], given.json()["rule"]) == (422, field, rule)


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/campaigns/sprng", "campaign"), ("GET", "/campaigns/sprng/report", "campaign"),
        ("GET", "/campaigns/sprng/deliveries", "campaign"), ("GET", "/campaigns/sprng/preview", "campaign"),
        ("POST", "/campaigns/sprng/start", "campaign"), ("POST", "/campaigns/sprng/pause", "campaign"),
        ("POST", "/campaigns/sprng/resume", "campaign"), ("POST", "/campaigns/sprng/cancel", "campaign"),
        ("PUT", "/campaigns/sprng/rate", "campaign"), ("GET", "/channels?batch=sprng", "batch"),
        ("POST", "/channels/sprng/activate", "channel"),
    ],
    ids=range(11),
)  # fmt: skip
async def test_what_does_not_exist(api, method, path, kind):
    given = await api.request(method, path, json={"rate": 5} if method == "PUT" else None)
    assert (given.status_code, given.json()["field"], given.json()["value"]) == (404, kind, "sprng")
    assert given.json()["error"].startswith(f"there is no {kind} 'sprng'")


async def test_what_does_not_exist_is_answered_with_a_similar_name(api, new):
    await api.post(CAMPAIGNS, json=new(name="autumn"))
    given = await api.get("/campaigns/autum")
    assert given.json()["error"] == "there is no campaign 'autum'; did you mean 'autumn'?"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("DELETE", "/campaigns", 405)])
async def test_an_unknown_request_is_answered_in_the_same_form(api, method, path, status):
    given = await api.request(method, path)
    assert (given.status_code, list(given.json())) == (status, ["error"])
