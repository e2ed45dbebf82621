"""Jobs that nobody can run go to the dead letter with a reason, and those behind them are run."""

from __future__ import annotations

import json

import pytest

from jobwire.errors import WrongState

POISON = {
    "no JSON": "{not json",
    "no object": "[1, 2]",
    "no type": '{"jobId": "p"}',
    "a type that is a number": '{"type": 7}',
    "a target that is a text": '{"type": "mail", "target": "node"}',
    "a stack that is a text": '{"type": "mail", "target": {"stack": "node"}}',
    "capabilities that are numbers": '{"type": "mail", "target": {"capabilities": [1]}}',
    "a server that is a list": '{"type": "mail", "target": {"server": ["w1"]}}',
    "limits that are a text": '{"type": "mail", "rateLimit": "2"}',
    "a limit that is a text": '{"type": "mail", "rateLimit": {"maxConcurrent": "2"}}',
    "invalid UTF-8": b"\xff\xfe{}",
}


def json_or_none(data):
    try:
        return json.loads(data)
    except ValueError:
        return None


@pytest.mark.parametrize("data", POISON.values(), ids=POISON)
async def test_a_poisoned_job_goes_to_the_dead_letter_with_a_reason(peer, queue, consume, claimed, data):
    await peer.store("poison", data)
    await peer.push("poison")
    await queue.add("healthy")
    assert [claim.job.data for claim in await claimed(consume(), 5)] == ["healthy"]
    assert await peer.redis.lrange(peer.key("jobs", "deadletter"), 0, -1) == ["poison"]
    assert await peer.redis.get(peer.key("jobs", "status", "poison")) == "dead"
    result = json.loads(await peer.redis.get(peer.key("jobs", "result", "poison")))
    assert (result["success"], result["error"]["name"]) == (False, "PoisonedJob")
    assert result["error"]["message"]
    assert not await peer.redis.exists(peer.key("jobs", "lock", "poison"))
    if json_or_none(data) is None:
        assert (await queue.get("poison")).error == result["error"]["message"]
    assert await peer.redis.llen(peer.key("jobs", "waiting")) == 0


@pytest.mark.parametrize(
    "fields",
    [{"target": None}, {"target": {"stack": None}}, {"rateLimit": None}, {"rateLimit": {"maxConcurrent": None}}],
    ids=str,
)
async def test_a_null_stands_for_what_is_not_there(peer, consume, claimed, fields):
    job_id = await peer.dispatch("mail", **fields)
    assert [claim.job.id for claim in await claimed(consume())] == [job_id]


async def test_data_that_only_we_can_not_read_fails_without_being_run(peer, queue, work):
    """The script's JSON is laxer than JSON: what it let pass is refused by the worker."""
    await peer.store("lax", '{"type": "mail", "payload": NaN}')
    await peer.push("lax")
    ran = []

    async def handler(job):
        ran.append(job.id)

    from awaiting import eventually

    async with work(handler) as worker:
        await eventually(lambda: worker.stats.failed == 1)
    assert ran == []
    assert await peer.redis.lrange(peer.key("jobs", "deadletter"), 0, -1) == ["lax"]
    assert await peer.redis.get(peer.key("jobs", "data", "lax")) == '{"type": "mail", "payload": NaN}'
    with pytest.raises(WrongState):
        await queue.retry("lax")
    [dead] = await queue.jobs("failed")
    assert (dead.id, "can't be read" in dead.error) == ("lax", True)


async def test_poison_that_comes_due_does_not_stop_the_others(peer, queue, consume, claimed):
    await peer.store("poison", "{")
    await peer.redis.zadd(peer.key("jobs", "delayed"), {"poison": 1})
    await queue.add("healthy", delay=0.001)
    [tick] = [duty for duty in consume().duties() if duty.name == "schedule"]
    await tick.run()
    assert [claim.job.data for claim in await claimed(consume(), 5)] == ["healthy"]
    assert await peer.redis.lrange(peer.key("jobs", "deadletter"), 0, -1) == ["poison"]
