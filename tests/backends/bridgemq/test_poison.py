"""Jobs that nobody can run go to the dead letter with a reason, and those behind them are run."""

from __future__ import annotations

import json

import pytest
from redis.asyncio import Redis

from awaiting import eventually
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
    "a limit beyond all numbers": '{"type": "mail", "rateLimit": {"maxConcurrent": 1e400}}',
    "a limit that is no number": '{"type": "mail", "rateLimit": {"maxPerMinute": NaN}}',
    "a stack of invalid UTF-8": b'{"type": "mail", "target": {"stack": ["\xff"]}}',
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


@pytest.mark.parametrize("data", POISON.values(), ids=POISON)
async def test_a_poisoned_job_whose_type_can_be_read_is_among_the_failed_jobs_of_its_queue(peer, queue, work, data):
    async def handle(job): ...

    await peer.store("poison", data)
    await peer.push("poison")
    typed = f'"type": "{queue.name}"' in (data if isinstance(data, str) else data.decode(errors="replace"))
    async with work(handle):
        await eventually(lambda: peer.redis.llen(peer.key("jobs", "deadletter")))
    assert (await queue.counts())["failed"] == typed
    assert [job.id for job in await queue.jobs("failed")] == ["poison"] * typed
    if typed:
        await queue.admin.remove("poison")
        assert (await queue.counts())["failed"] == 0
        assert not await peer.redis.exists(peer.key("jobs", "deadletter"), peer.key("jobs", "data", "poison"))


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

    async with work(handler) as worker:
        await eventually(lambda: worker.stats.failed == 1)
    assert ran == []
    assert await peer.redis.lrange(peer.key("jobs", "deadletter"), 0, -1) == ["lax"]
    assert await peer.redis.get(peer.key("jobs", "data", "lax")) == '{"type": "mail", "payload": NaN}'
    with pytest.raises(WrongState):
        await queue.admin.retry("lax")
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


async def test_the_next_leader_logs_what_was_set_aside_before_and_empties_the_list(peer, consume, claimed, caplog):
    """The list is bounded while no worker leads."""
    for number in range(150):
        await peer.store(f"poison-{number}", "{")
        await peer.push(f"poison-{number}")
    assert await claimed(consume(), 5) == []
    assert await peer.redis.llen(peer.key("jobs", "deadletter")) == 150
    assert await peer.redis.llen(peer.key("x", "aside")) == 200, "an id and a reason for each of the last 100"
    [tick] = [duty for duty in consume().duties() if duty.name == "schedule"]
    await tick.run()
    assert not await peer.redis.exists(peer.key("x", "aside"))
    assert "moved 100 or more jobs that can't be run to the dead letter" in caplog.text


BAD_ID = b"broken-\xff\xfe"
HEALTHY = '{"type": "mail", "payload": "fine", "retry": {"attempts": 0}}'


@pytest.mark.parametrize("place", ["waiting", "delayed", "cron"])
async def test_a_job_id_that_is_not_utf8_is_set_aside_once_with_a_reason_in_the_log(peer, queue, work, caplog, place):
    data = HEALTHY if place != "cron" else '{"type": "mail", "schedule": {"cron": "* * * * * *"}}'
    await peer.redis.set(peer.key("jobs", "data", "").encode() + BAD_ID, data)
    if place == "waiting":
        await peer.push(BAD_ID)
    else:
        await peer.redis.zadd(peer.key("jobs", place), {BAD_ID: 1})
    ran = []

    async def handler(job):
        ran.append(job.id)

    async with work(handler, lease=0.2, recover_every=0.05) as worker:
        good = await queue.add("healthy")
        await good.wait(timeout=10)
        await eventually(lambda: "not valid UTF-8" in caplog.text)
    assert ran == [good.id]
    assert worker.stats.recovered == 0
    assert caplog.text.count("not valid UTF-8") == 1
    assert "broken-\\xff\\xfe" in caplog.text
    binary = peer.redis.get_connection_kwargs()
    login = {key: binary.get(key) for key in ("host", "port", "db", "username", "password")}
    async with Redis(**login) as raw:
        assert await raw.lrange(peer.key("jobs", "deadletter"), 0, -1) == [BAD_ID]
        assert not await raw.exists(peer.key("jobs", place))
        result = json.loads(await raw.get(peer.key("jobs", "result", "").encode() + BAD_ID))
        assert result["error"]["message"] == "the job id is not valid UTF-8"


@pytest.mark.parametrize("name", ["é", "日本", "😀", "a" * 300])
async def test_an_id_of_any_valid_text_is_run(peer, consume, claimed, name):
    await peer.store(name, HEALTHY)
    await peer.push(name)
    assert [claim.job.id for claim in await claimed(consume())] == [name]


async def test_job_data_of_another_type_is_set_aside(peer, queue, consume, claimed):
    await peer.redis.hset(peer.key("jobs", "data", "hash"), "type", "mail")
    await peer.push("hash")
    await queue.add("healthy")
    assert [claim.job.data for claim in await claimed(consume(), 5)] == ["healthy"]
    result = json.loads(await peer.redis.get(peer.key("jobs", "result", "hash")))
    assert result["error"]["message"] == "the job data is not a string"


async def test_a_poisoned_job_that_stands_in_the_list_twice_is_dead_once(peer, consume, claimed):
    await peer.store("poison", "{")
    for _ in range(2):
        await peer.push("poison")
    assert await claimed(consume(), 5) == []
    assert await peer.redis.lrange(peer.key("jobs", "deadletter"), 0, -1) == ["poison"]
