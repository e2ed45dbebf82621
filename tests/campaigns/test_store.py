"""Users, batches, channels and templates, and how rows are found by id or by name."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.campaigns import Ambiguous, MessageTemplate, NotFound
from jobwire.errors import InvalidOption


async def test_a_row_is_found_by_id_or_by_name(connection, store):
    ann = await store.users.add(connection, "annabel")
    assert await store.users.get(connection, ann.id) == await store.users.get(connection, "annabel") == ann
    with pytest.raises(NotFound, match="there is no user 'anabel'; did you mean 'annabel'"):
        await store.users.get(connection, "anabel")


async def test_a_name_of_several_rows_is_refused_with_their_ids(connection, store):
    first = await store.batches.add(connection, "news")
    second = await store.batches.add(connection, "news")
    with pytest.raises(Ambiguous) as refused:
        await store.batches.get(connection, "news")
    assert set(refused.value.ids) == {first.id, second.id}
    assert first.id in str(refused.value)
    assert await store.batches.get(connection, second.id) == second


async def test_an_id_is_preferred_to_a_name(connection, store):
    first = await store.batches.add(connection, "news")
    await store.batches.add(connection, first.id)
    assert await store.batches.get(connection, first.id) == first


async def test_of_several_callers_at_once_one_adds_the_batch(connection, store, open_connection):
    async def get_or_add(one):
        async with one.transaction():
            return await store.batches.get_or_add(one, "news")

    connections = [await open_connection() for _ in range(5)]
    found = await asyncio.gather(*(get_or_add(one) for one in connections))
    assert len({batch.id for batch in found}) == 1


async def test_channels_are_listed_in_a_batch_once(connection, store):
    batch = await store.batches.add(connection, "news")
    channels = [await store.channels.add(connection, f"name{number}") for number in range(3)]
    ids = [channel.id for channel in channels]
    assert await store.batches.add_channels(connection, batch.id, [*ids[:2], ids[0]]) == 2
    assert await store.batches.add_channels(connection, batch.id, ids) == 1
    await store.channels.block(connection, ids[0], "")
    counted = await store.batches.count(connection, batch.id)
    assert (counted.channels, counted.active) == (3, 2)
    active = await store.channels.page(connection, batch_id=batch.id, active=True)
    assert {channel.id for channel in active} == set(ids[1:])
    assert await store.batches.remove_channels(connection, batch.id, [ids[0], "none"]) == 1
    assert len(await store.channels.page(connection, batch_id=batch.id)) == 2


@pytest.mark.parametrize("spelling", ["news", "@NEWS", "https://t.me/news", "t.me/s/News/12"])
async def test_a_channel_is_one_however_its_username_is_spelled(connection, store, spelling):
    channel = await store.channels.add(connection, "@news", "tea")
    assert channel.username == "@news"
    assert await store.channels.add(connection, spelling) == channel
    assert await store.channels.get(connection, spelling) == channel
    assert await store.channels.get(connection, channel.id) == channel


async def test_an_inactive_channel_is_not_added_again(connection, store):
    channel = await store.channels.add(connection, "@news")
    await store.channels.block(connection, channel.id, "PEER_BLOCKED")
    again = await store.channels.add(connection, "@news")
    assert (again.id, again.is_active) == (channel.id, False)


async def test_a_username_that_is_not_one_is_refused_with_the_reason(connection, store):
    with pytest.raises(InvalidOption, match="username: must have 4 to 32 characters"):
        await store.channels.add(connection, "abc")
    with pytest.raises(NotFound):
        await store.channels.get(connection, "not a name")


async def test_rows_are_read_page_by_page(connection, store):
    for number in range(5):
        await store.templates.add(connection, f"t{number}", MessageTemplate("Hi"))
    first = await store.templates.page(connection, limit=3)
    rest = await store.templates.page(connection, after=first[-1].id)
    assert (len(first), len(rest)) == (3, 2)
    assert {one.name for one in first + rest} == {f"t{number}" for number in range(5)}
    await store.users.add(connection, "ann")
    await store.batches.add(connection, "news")
    assert [len(await table.page(connection)) for table in (store.users, store.batches, store.channels)] == [1, 1, 0]
