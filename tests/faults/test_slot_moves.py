"""While the slot of a queue moves between two nodes of a cluster, no script runs on a part of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from redis.crc import key_slot

from jobwire import Queue, State, StoreUnavailable, Worker
from jobwire.embedded import Cluster

pytestmark = pytest.mark.slow


def ask(url: str, *command: Any) -> Any:
    with redis.Redis.from_url(url) as client:
        return client.execute_command(*command)


@contextmanager
def moving(cluster: Cluster, slot: int) -> Iterator[str]:
    """Lets the slot be under way between its node and another one, whose URL this yields. In the end it stays."""
    source = next(url for url in cluster.urls if ask(url, "CLUSTER", "COUNTKEYSINSLOT", slot))
    target = next(url for url in cluster.urls if url != source)
    ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ask(source, "CLUSTER", "MYID"))
    ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ask(target, "CLUSTER", "MYID"))
    try:
        yield target
    finally:
        for url in (source, target):
            ask(url, "CLUSTER", "SETSLOT", slot, "STABLE")


@pytest.mark.parametrize("place", ["bullmq+cluster://{}/?prefix={{{}}}", "bridgemq+cluster://{}/?namespace={{{}}}"])
async def test_an_add_waits_or_fails_and_leaves_nothing_where_the_queue_is_not_yet(
    jobwire_valkey_cluster: Cluster, unique: str, place: str
) -> None:
    url = place.format(jobwire_valkey_cluster.hosts, unique)
    async with Queue("work", url) as queue:
        await queue.add(1)
        with moving(jobwire_valkey_cluster, slot := key_slot(unique.encode())) as target:
            with pytest.raises(StoreUnavailable):
                await queue.add(2)
            assert ask(target, "CLUSTER", "COUNTKEYSINSLOT", slot) == 0
        third = await queue.add(3)
        assert (await queue.counts())[State.WAITING] == 2
        async with Worker("work", lambda job: job.data, url):
            assert await third.wait(timeout=20) == 3
        await queue.admin.obliterate(force=True)
