"""Names of campaigns and templates are unique among those that jobwire creates."""

from __future__ import annotations

import asyncio

import pytest

from jobwire.campaigns import add_template, create_campaign
from jobwire.errors import InvalidOption


async def test_of_several_callers_one_creates_the_campaign(connection, store, open_connection, unique):
    await store.batches.add(connection, "news")
    await add_template(connection, "hello", "Hello", schema=unique)
    others = [await open_connection() for _ in range(5)]
    results = await asyncio.gather(
        *(create_campaign(one, "spring", batch="news", template="hello", rate=1, schema=unique) for one in others),
        return_exceptions=True,
    )
    refused = [one for one in results if isinstance(one, InvalidOption)]
    assert (len(refused), {one.field for one in refused}) == (4, {"name"})
    assert len(await store.campaigns.page(connection)) == 1


async def test_the_name_of_a_template_is_refused_with_its_id(connection, unique):
    made = await add_template(connection, "hello", "Hello", schema=unique)
    with pytest.raises(InvalidOption, match=f"another template \\(id {made.id}\\)"):
        await add_template(connection, "hello", "Hello again", schema=unique)
