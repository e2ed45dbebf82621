"""Who counts the queues where Node keeps their history."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from .node import NodeBoss


@pytest.fixture
def history_keeper(peer, unique, rows):
    """A Node supervisor that keeps the history of the queues, and has not yet written any of it."""

    @asynccontextmanager
    async def running():
        keeper = NodeBoss(peer, unique, "keeper", supervise=True, persistQueueStats=True, superviseIntervalSeconds=3600)
        await keeper.start()
        try:
            await rows("DELETE FROM queue_stats RETURNING 1")
            await rows("UPDATE queue SET monitor_on = NULL, monitor_claim_on = NULL RETURNING 1")
            yield keeper
        finally:
            await keeper.stop()

    return running


async def _counted(rows, queue):
    [row] = await rows("SELECT monitor_on, monitor_claim_on FROM queue WHERE name = %s", queue.name)
    return (row["monitor_on"] is not None, row["monitor_claim_on"] is not None)


async def test_counting_is_left_to_a_node_that_keeps_the_history(queue, boss, rows, history_keeper):
    async with history_keeper():
        await boss.supervise()
        assert await _counted(rows, queue) == (False, False)


async def test_counting_is_ours_when_that_node_has_stopped(queue, boss, rows, history_keeper):
    async with history_keeper():
        pass
    await boss.supervise()
    assert await _counted(rows, queue) == (True, True)


async def test_counting_is_ours_when_that_node_has_died(queue, boss, rows, history_keeper):
    async with history_keeper():
        await rows("UPDATE instance SET heartbeat_on = now() - interval '5 minutes' RETURNING 1")
        await boss.supervise()
        assert await _counted(rows, queue) == (True, True)


async def test_counting_is_ours_beside_a_node_that_keeps_no_history(queue, boss, rows):
    await boss.supervise()
    assert await _counted(rows, queue) == (True, True)


async def test_node_serves_the_counts_that_python_made(queue, node, boss):
    """As long as they are fresh it does not count itself: a job that came later is not among them."""
    await node.call("send", queue.name, {"n": 1})
    await node.call("send", queue.name, {"n": 2}, {"startAfter": 3600})
    await node.call("send", queue.name, {"n": 3}, {"priority": 5})
    await boss.supervise()
    await node.call("send", queue.name, {"n": 4})
    [served] = await node.call("getQueueStats", queue.name)
    names = ("queuedCount", "readyCount", "deferredCount", "activeCount", "failedCount", "totalCount")
    assert {name: served[name] for name in names} == dict(zip(names, (3, 2, 1, 0, 0, 3), strict=True))
