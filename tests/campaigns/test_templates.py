"""Templates: parameters, escapes, and the limits of Telegram, all checked before anything is queued."""

from __future__ import annotations

import json

import pytest

from jobwire.campaigns import MessageTemplate, NotFound, add_template, create_campaign, preview
from jobwire.errors import InvalidOption

CHANNEL = {"username": "@news", "category": "tea"}
PHOTO = {"media_type": "PHOTO", "media_url": "https://example.com/a.jpg"}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ("{username}: {x}{x}", "@news: 11"),
        ("{{x}} {{{x}}}", "{x} {1}"),
        ("{category}", "tea"),
        ("}}{{", "}{"),
        ("100 % \\ %(x)s $1", "100 % \\ %(x)s $1"),
    ],
)
def test_parameters_are_filled_in_and_doubled_braces_are_single_ones(content, text):
    template = MessageTemplate(content)
    assert template.render({"x": 1}, CHANNEL) == text


def test_a_value_is_not_read_as_a_template_again():
    assert MessageTemplate("{x}").render({"x": "{username}"}, CHANNEL) == "{username}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Hello {", "single { at character 7: write {{ for a brace"),
        ("Hello }", "single } at character 7"),
        ("{}", "has {} at character 1, which is not the name of a parameter"),
        ("{a b}", "{a b} at character 1"),
        ("{0}", "not the name"),
        ("{a.b}", "not the name"),
        ("{x", "single {"),
        ("  ", "must not be empty without media"),
        pytest.param("a\0b", "NUL", id="NUL"),
        pytest.param("\ud800", "lone surrogate", id="surrogate"),
        (7, "must be a string"),
    ],
)
def test_a_text_that_is_not_a_template_is_refused_with_the_place(content, words):
    with pytest.raises(InvalidOption) as refused:
        MessageTemplate(content)
    assert refused.value.field == "content"
    assert words in refused.value.rule


@pytest.mark.parametrize(
    ("media", "field"),
    [
        ({"media_type": "PHOTO"}, "media_url"),
        ({"media_url": "https://example.com"}, "media_type"),
        ({"media_type": "GIF", "media_url": "https://example.com"}, "media_type"),
        ({"media_type": "PHOTO", "media_url": "/etc/passwd"}, "media_url"),
    ],
)
def test_media_have_a_known_type_and_a_url(media, field):
    with pytest.raises(InvalidOption) as refused:
        MessageTemplate("x", **media)
    assert refused.value.field == field


@pytest.mark.parametrize(("media", "limit"), [({}, 4096), (PHOTO, 1024)], ids=["text", "caption"])
def test_telegrams_limits_are_counted_in_utf_16(media, limit):
    MessageTemplate("x" * limit, **media)
    MessageTemplate("🍵" * (limit // 2), **media)
    for content in ("x" * (limit + 1), "🍵" * (limit // 2) + "x"):
        with pytest.raises(InvalidOption, match=f"{limit + 1:,} characters; Telegram takes at most {limit:,}"):
            MessageTemplate(content, **media)


def test_braces_count_once_and_a_caption_may_be_empty():
    MessageTemplate("{{" * 4096)
    assert MessageTemplate("", **PHOTO).limit == 1024


@pytest.mark.parametrize("value", ["", " \n"])
def test_a_text_is_not_empty_with_its_parameters(value):
    with pytest.raises(InvalidOption, match="content: would be an empty text with these parameters"):
        MessageTemplate(" {text}").check_params({"text": value})
    MessageTemplate("{text}{username}").check_params({"text": value})
    MessageTemplate("{text}", **PHOTO).check_params({"text": value})


@pytest.mark.parametrize(
    ("params", "field", "words"),
    [
        ({}, "params.product", "is missing"),
        ({"product": 1, "prodct": 2}, "params.prodct", "did you mean product?"),
        ({"product": 1, "zzz": 2}, "params.zzz", "it has product"),
        ({"product": 1, "username": "x"}, "params.username", "filled in from each channel"),
        ({"product": None}, "params.product", "must be a text or a number"),
        ({"product": True}, "params.product", "must be a text or a number"),
        ({"product": [1]}, "params.product", "must be a text or a number"),
        ({"product": float("nan")}, "params.product", "finite"),
        ({"product": "a\0"}, "params.product", "NUL"),
        ({"product": "x" * 4096}, "content", "Telegram takes at most 4,096"),
        ([("product", 1)], "params", "must be a mapping"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_name(params, field, words):
    with pytest.raises(InvalidOption) as refused:
        MessageTemplate("Hello {username}: {product}").check_params(params)
    assert refused.value.field == field
    assert words in refused.value.rule


@pytest.fixture
async def batch(connection, store):
    batch = await store.batches.add(connection, "news")
    channels = [
        await store.channels.add(connection, name, category)
        for name, category in (("@first", "tea"), ("@second", "🍵" * 10), ("@inactive", None))
    ]
    await store.channels.block(connection, channels[2].id, "")
    await store.batches.add_channels(connection, batch.id, [channel.id for channel in channels])
    return batch


async def test_a_campaign_is_created_with_checked_values_and_previewed(connection, store, batch, unique):
    user = await store.users.add(connection, "ann")
    template = await add_template(connection, "hello", "{username} likes {product} ({category})", schema=unique)
    campaign = await create_campaign(
        connection, "spring", batch="news", template="hello", params={"product": "Tea"}, rate=60, mode="LIVE",
        retry_limit=0, description="first", created_by="ann", schema=unique,
    )  # fmt: skip
    assert (campaign.status, campaign.batch_id, campaign.template_id) == ("QUEUED", batch.id, template.id)
    assert (campaign.mode, campaign.delivery_rate, campaign.retry_limit) == ("LIVE", 60, 0)
    assert (campaign.params, campaign.created_by_id, campaign.description) == ({"product": "Tea"}, user.id, "first")
    shown = await preview(connection, "spring", schema=unique)
    assert sorted((one.username, one.text) for one in shown) == [
        ("@first", "@first likes Tea (tea)"), ("@second", f"@second likes Tea ({'🍵' * 10})"),
    ]  # fmt: skip
    assert await store.campaigns.page(connection, status="QUEUED") == [campaign]
    assert await store.campaigns.page(connection, status="RUNNING") == []


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"rate": 0}, "rate"),
        ({"rate": 2**31}, "rate"),
        ({"rate": 1.5}, "rate"),
        ({"rate": True}, "rate"),
        ({"retry_limit": -1}, "retry_limit"),
        ({"mode": "live"}, "mode"),
        ({"mode": None}, "mode"),
        ({"params": {}}, "params.product"),
        ({"params": {"product": 1, "other": 2}}, "params.other"),
        ({"description": 7}, "description"),
    ],
)
@pytest.mark.usefixtures("batch")
async def test_a_campaign_with_a_wrong_value_is_refused_and_not_created(connection, store, unique, changed, field):
    await add_template(connection, "hello", "Meet {product}", schema=unique)
    values = {"name": "spring", "batch": "news", "template": "hello", "rate": 1, "params": {"product": 1}} | changed
    with pytest.raises(InvalidOption) as refused:
        await create_campaign(connection, values.pop("name"), **values, schema=unique)
    assert refused.value.field == field
    assert await store.campaigns.page(connection) == []


@pytest.mark.parametrize("missing", ["batch", "template", "created_by"])
async def test_a_campaign_of_something_that_does_not_exist_is_refused(connection, batch, unique, missing):
    await add_template(connection, "hello", "Hi", schema=unique)
    values = {"batch": "news", "template": "hello"} | {missing: "none"}
    with pytest.raises(NotFound, match="'none'"):
        await create_campaign(connection, "spring", rate=1, schema=unique, **values)


async def test_a_category_that_active_channels_lack_is_refused(connection, store, batch, unique):
    await add_template(connection, "hello", "{category}", schema=unique)
    channel = await store.channels.add(connection, "@without")
    await store.batches.add_channels(connection, batch.id, [channel.id])
    with pytest.raises(
        InvalidOption, match=r"params\.category: is missing: 1 active channels of batch 'news' have none"
    ):
        await create_campaign(connection, "spring", batch="news", template="hello", rate=1, schema=unique)


async def test_the_longest_channel_decides_whether_a_message_is_too_long(connection, batch, unique):
    # "@second" has 7 units and its category 20.
    for name, length in (("fits", 4096 - 27), ("too-long", 4096 - 26)):
        await add_template(connection, name, "x" * length + "{username}{category}", schema=unique)
    await create_campaign(connection, "a", batch="news", template="fits", rate=1, schema=unique)
    with pytest.raises(InvalidOption, match="4,097 characters"):
        await create_campaign(connection, "b", batch="news", template="too-long", rate=1, schema=unique)


@pytest.mark.parametrize("value", [1e300, 1e16, 1e-7, 5.0, 0.1, -2.5e20, 10**30, 7])
async def test_numbers_have_the_same_text_before_and_after_the_database(connection, value):
    checked = MessageTemplate("{number}").check_params({"number": value})
    row = await (await connection.execute("SELECT %s::jsonb", [json.dumps({"number": value})])).fetchone()
    assert str(row[0]["number"]) == str(checked["number"])


@pytest.mark.parametrize("value", [1e300, 10**300, 10**5000], ids=["float", "integer", "huge"])
def test_a_number_that_makes_the_text_too_long_is_refused(value):
    with pytest.raises(InvalidOption):
        MessageTemplate("x" * 4000 + "{number}").check_params({"number": value})
