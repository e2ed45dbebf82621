"""Nodes of a cluster close connections that are idle. The next add makes another one."""

from __future__ import annotations

from closing import close_redis_connections
from jobwire import Queue, State
from jobwire.embedded import Cluster


async def test_an_add_to_a_cluster_whose_nodes_have_closed_all_connections_is_made_once(
    jobwire_valkey_cluster: Cluster, unique: str
) -> None:
    def close() -> int:
        return sum(close_redis_connections(node, unique) for node in jobwire_valkey_cluster.urls)

    server = jobwire_valkey_cluster.url.removeprefix("redis")
    async with Queue("letters", f"bullmq+cluster{server}?prefix={{{unique}}}&client_name={unique}") as queue:
        await queue.add(1)
        assert close()
        await queue.add(2)
        assert close()
        await queue.add(3, delay=3600)
        counts = await queue.counts()
        assert (counts[State.WAITING], counts[State.DELAYED]) == (2, 1)
