"""What a protocol has no place for is refused by name before anything is written, never ignored."""

from __future__ import annotations

import pytest

from jobwire.backoff import Backoff
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, NotSupported
from jobwire.options import NewJob, Parent, Target, Unique

ASKED = [
    (Feature.JOB_NAMES, {"name": "welcome"}),
    (Feature.PRIORITIES, {"priority": 1}),
    (Feature.LIFO, {"lifo": True}),
    (Feature.ATTEMPTS, {"attempts": 3}),
    (Feature.BACKOFF_FIXED, {"backoff": Backoff.fixed(1)}),
    (Feature.BACKOFF_LINEAR, {"backoff": Backoff.linear(1)}),
    (Feature.BACKOFF_EXPONENTIAL, {"backoff": Backoff.exponential(1)}),
    (Feature.BACKOFF_CUSTOM, {"backoff": Backoff.custom("mine")}),
    (Feature.TIMEOUTS, {"timeout": 5}),
    (Feature.EXPIRY, {"expires": 60}),
    (Feature.KEEP, {"keep_completed": 5}),
    (Feature.UNIQUE, {"unique": Unique("k")}),
    (Feature.UNIQUE_TTL, {"unique": Unique("k", ttl=5)}),
    (Feature.UNIQUE_EXTEND, {"unique": Unique("k", ttl=5, extend=True)}),
    (Feature.UNIQUE_REPLACE, {"unique": Unique("k", replace=True)}),
    (Feature.ROUTING, {"target": Target(server="s1")}),
]


@pytest.mark.parametrize(("feature", "options"), ASKED, ids=[feature.name.lower() for feature, _ in ASKED])
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
        assert (await queue.add(1, transaction=None)).id
        return
    with pytest.raises(NotSupported, match="transaction"):
        await queue.add(1, transaction=object())
    assert sum((await queue.counts()).values()) == 0


async def test_a_connection_given_to_an_add_is_refused_with_the_word_for_a_transaction(queue):
    with pytest.raises(InvalidOption, match="did you mean transaction"):
        await queue.add(1, connection=object())
    with pytest.raises(InvalidOption, match="did you mean transaction"):
        await queue.add_many([NewJob(1)], connection=object())
    assert sum((await queue.counts()).values()) == 0
