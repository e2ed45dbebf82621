"""What a protocol has no place for is refused by name before anything is written, never ignored."""

from __future__ import annotations

import pytest

from jobwire.backoff import Backoff
from jobwire.boundary import Feature
from jobwire.errors import NotSupported
from jobwire.options import Parent, Target, Unique

ASKED = [
    ("job_names", {"name": "welcome"}),
    ("custom_ids", {"id": "order-17"}),
    ("priority", {"priority": 1}),
    ("lifo", {"lifo": True}),
    ("per_job_attempts", {"attempts": 3}),
    ("backoff.fixed", {"backoff": Backoff.fixed(1)}),
    ("backoff.linear", {"backoff": Backoff.linear(1)}),
    ("backoff.exponential", {"backoff": Backoff.exponential(1)}),
    ("backoff.custom", {"backoff": Backoff.custom("mine")}),
    ("job_timeout", {"timeout": 5}),
    ("expires", {"expires": 60}),
    ("keep", {"keep_completed": 5}),
    ("unique.key", {"unique": Unique("k")}),
    ("unique.ttl", {"unique": Unique("k", ttl=5)}),
    ("unique.extend", {"unique": Unique("k", ttl=5, extend=True)}),
    ("unique.replace", {"unique": Unique("k", replace=True)}),
    ("routing", {"target": Target(server="s1")}),
]


@pytest.mark.parametrize(("feature", "options"), ASKED, ids=[feature for feature, _ in ASKED])
async def test_an_option_is_honoured_or_refused(queue, needs, feature, options):
    added = []
    with needs(queue, feature):
        added.append(await queue.add(1, **options))
    assert sum((await queue.counts()).values()) == len(added)


async def test_a_parent_is_honoured_or_refused(queue, needs):
    with needs(queue, Feature.FLOWS):
        parent = await queue.add("parent", delay=3600)
        child = await queue.add("child", parent=Parent(parent.id, queue.name))
        assert (await queue.get(child.id)).data == "child"


async def test_an_add_inside_a_transaction_is_refused_where_there_are_none(queue):
    if queue.capabilities.has(Feature.TRANSACTIONAL_ADD):
        assert (await queue.add(1, connection=None)).id
        return
    with pytest.raises(NotSupported, match="transaction"):
        await queue.add(1, connection=object())
    assert sum((await queue.counts()).values()) == 0
