"""Jobs that no live worker can take, and who the workers are."""

from __future__ import annotations

import json

import pytest

from awaiting import eventually
from jobwire import NewJob, Queue, Target
from jobwire.errors import NotSupported
from jobwire.native import BridgeMQWorker


async def names(queue):
    return sorted(worker.name for worker in await queue.admin.workers())


async def test_without_workers_no_job_is_routable(queue):
    await queue.add("anyone")
    assert [job.data for job in await queue.admin.unroutable()] == ["anyone"]


async def test_only_what_nobody_matches_is_shown(queue, work, peer):
    await queue.add_many(
        [
            NewJob("py", target=Target(stack=("py",)), delay=3600),
            NewJob("cobol", target=Target(stack=("cobol",))),
            NewJob("gpu and tpu", target=Target(capabilities=("gpu", "tpu"), mode="all")),
            NewJob("w2", target=Target(server="w2")),
            NewJob("w1 is there", target=Target(server="w1")),
        ]
    )
    await peer.dispatch("mail", "nobody", target={"server": None})

    async def handler(job):
        return job.data

    async with work(handler, native=BridgeMQWorker(server_id="w1", stack="py", capabilities=["gpu"])) as worker:
        await eventually(lambda: names(queue))
        await eventually(lambda: worker.stats.completed == 1)
        shown = [job.data for job in await queue.admin.unroutable()]
        assert sorted(shown) == ["cobol", "gpu and tpu", "nobody", "w2"]
        assert len(await queue.admin.unroutable(limit=2)) == 2


async def test_a_peers_worker_counts_for_every_type_and_ours_for_its_own(queue, peer, connection, work):
    await queue.add("x", target=Target(stack=("node",)))
    about = {"serverId": "n1", "stack": "node", "region": "eu", "capabilities": [], "lastSeen": 1}
    await peer.redis.set(peer.key("workers", "n1"), json.dumps(about))
    await peer.redis.sadd(peer.key("workers", "active"), "n1")
    assert len(await queue.admin.unroutable()) == 1
    await peer.redis.set(peer.key("workers", "heartbeat", "n1"), "1", ex=30)
    assert await queue.admin.unroutable() == []
    async with Queue("letter", connection) as letters, work(lambda job: None, native=BridgeMQWorker(server_id="ours")):

        async def both():
            return await names(queue) == ["n1", "ours"]

        await eventually(both)
        assert await names(letters) == ["n1"]


async def test_other_protocols_have_no_routing():
    async with Queue("q", "memory:") as queue:
        with pytest.raises(NotSupported, match="routing"):
            await queue.admin.unroutable()
