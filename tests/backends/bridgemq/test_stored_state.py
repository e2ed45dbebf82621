"""Key for key what the spec says: another client must find its way with the spec alone."""

from __future__ import annotations

import json
import time

import pytest

from awaiting import assert_left, eventually
from jobwire import Backoff, NewJob, Target
from jobwire.boundary import Completed, Failed
from jobwire.errors import InvalidOption
from jobwire.native import BridgeMQWorker


async def document(redis, namespace, job_id):
    return json.loads(await redis.get(f"{namespace}:jobs:data:{job_id}"))


async def server_ms(redis):
    seconds, micros = await redis.time()
    return seconds * 1000 + micros // 1000


async def keys_of(redis, namespace):
    """Every key of the spec's own, without ours."""
    found = [key async for key in redis.scan_iter(match=f"{namespace}:*", count=100_000)]
    return sorted(key.removeprefix(f"{namespace}:") for key in found if not key.startswith(f"{namespace}:x:"))


async def test_a_new_job_is_written_with_every_field_and_no_null(queue, redis, namespace):
    added = await queue.add({"to": "a@example.com"})
    stored = await document(redis, namespace, added.id)
    assert stored.pop("createdAt") > 1.6e12
    assert stored == {
        "jobId": added.id,
        "type": "mail",
        "payload": {"to": "a@example.com"},
        "schedule": {},
        "retry": {"attempts": 0},
        "priority": 5,
        "dependsOn": [],
        "target": {},
        "metadata": {},
        "attempts": 0,
    }
    assert await redis.get(f"{namespace}:jobs:status:{added.id}") == "waiting"
    assert await redis.lrange(f"{namespace}:jobs:waiting", 0, -1) == [added.id]
    assert await keys_of(redis, namespace) == sorted(
        [f"jobs:data:{added.id}", f"jobs:status:{added.id}", "jobs:waiting"]
    )


async def test_options_are_written_under_their_native_names(queue, redis, namespace):
    added = await queue.add(
        None,
        priority=8,
        attempts=4,
        backoff=Backoff.exponential(2, jitter=0.25, cap=60),
        target=Target(capabilities=("gpu",), mode="all"),
        timeout=1.5,
        extra={
            "maxConcurrent": 2,
            "maxPerMinute": 30,
            "skipOn": ["KeyError"],
            "rerouteOn": ["OSError"],
            "metadata": {"a": 1},
        },
    )
    stored = await document(redis, namespace, added.id)
    assert stored["retry"] == {
        "attempts": 3,
        "backoff": {"type": "exponential", "delay": 2000, "maxDelay": 60_000, "jitter": True},
        "skipOn": ["KeyError"],
        "rerouteOn": ["OSError"],
    }
    assert stored["target"] == {"capabilities": ["gpu"], "mode": "all"}
    assert stored["rateLimit"] == {"maxConcurrent": 2, "maxPerMinute": 30}
    assert (stored["priority"], stored["metadata"], stored["x"]) == (8, {"a": 1}, {"timeoutMs": 1500})


async def test_a_delayed_job_has_its_due_time_as_score(queue, redis, namespace):
    before = await server_ms(redis)
    added = await queue.add(1, delay=60)
    stored = await document(redis, namespace, added.id)
    assert stored["schedule"] == {"delay": 60_000}
    score = await redis.zscore(f"{namespace}:jobs:delayed", added.id)
    assert before <= score - 60_000 <= await server_ms(redis)
    assert await redis.get(f"{namespace}:jobs:status:{added.id}") == "delayed"


async def test_high_priority_goes_to_the_front_and_the_rest_to_the_back(queue, redis, namespace):
    for data, priority in (("a", None), ("b", 1), ("c", 7), ("d", 6), ("e", 10)):
        await queue.add(data, priority=priority, id=data)
    assert await redis.lrange(f"{namespace}:jobs:waiting", 0, -1) == ["e", "c", "a", "b", "d"]


async def test_a_running_job_has_a_lock_with_the_server_id_and_is_counted(queue, redis, namespace, consume, claimed):
    added = await queue.add(1)
    began = time.monotonic()
    [claim] = await claimed(consume("w1", lease=30))
    lock = f"{namespace}:jobs:lock:{added.id}"
    assert await redis.get(lock) == "w1"
    assert_left(await redis.pttl(lock) / 1000, of=30, since=began)
    assert await redis.smembers(f"{namespace}:jobs:active") == {added.id}
    assert await redis.get(f"{namespace}:ratelimit:concurrent:mail") == "1"
    assert await redis.get(f"{namespace}:ratelimit:minute:mail") == "1"
    assert_left(await redis.pttl(f"{namespace}:ratelimit:minute:mail") / 1000, of=60, since=began)
    assert await redis.get(f"{namespace}:jobs:status:{added.id}") == "active"
    assert await redis.llen(f"{namespace}:jobs:waiting") == 0
    assert claim.job.worker == "w1"


async def test_a_completed_job_leaves_its_result_for_a_day_and_nothing_running(
    queue, redis, namespace, consume, claimed
):
    added = await queue.add(1)
    consumer = consume("w1")
    [claim] = await claimed(consumer)
    claim.run_seconds = 0.25
    await queue.connection.backend.progress.update_progress("mail", added.id, b"50")
    began = time.monotonic()
    await consumer.settle([Completed(claim, b'{"sent":true}')], 0)
    result = json.loads(await redis.get(f"{namespace}:jobs:result:{added.id}"))
    assert (result["success"], result["data"], result["processingTime"]) == (True, {"sent": True}, 250)
    assert "error" not in result
    for name in ("result", "status", "data", "progress"):
        assert_left(await redis.pttl(f"{namespace}:jobs:{name}:{added.id}") / 1000, of=86_400, since=began)
    assert await redis.get(f"{namespace}:jobs:status:{added.id}") == "completed"
    assert not await redis.exists(f"{namespace}:jobs:lock:{added.id}", f"{namespace}:jobs:active")
    assert await redis.get(f"{namespace}:ratelimit:concurrent:mail") == "0"


async def test_progress_is_written_as_the_spec_has_it(queue, redis, namespace):
    added = await queue.add(1)
    backend, key = queue.connection.backend, f"{namespace}:jobs:progress:{added.id}"
    for value, expected in (
        (b"75", {"percent": 75}),
        (b'"half"', {"percent": 0, "message": "half", "x": {"only": "message"}}),
        (b'{"percent":75,"message":"step 3"}', {"percent": 75, "message": "step 3"}),
    ):
        await backend.progress.update_progress("mail", added.id, value)
        stored = json.loads(await redis.get(key))
        assert stored.pop("updatedAt") > 1.6e12
        assert stored == expected


async def test_a_dead_job_is_at_the_head_of_the_dead_letter_with_its_data_kept(
    queue, redis, namespace, consume, claimed
):
    added = await queue.add_many([NewJob(1), NewJob(2)])
    consumer = consume()
    claims = await claimed(consumer, 2)
    for claim in claims:
        await consumer.settle([Failed(claim, "broken", kind="KeyError")], 0)
    assert await redis.lrange(f"{namespace}:jobs:deadletter", 0, -1) == [added[1].id, added[0].id]
    assert await redis.get(f"{namespace}:jobs:status:{added[0].id}") == "dead"
    assert await redis.ttl(f"{namespace}:jobs:data:{added[0].id}") == -1
    assert (await document(redis, namespace, added[0].id))["attempts"] == 1
    result = json.loads(await redis.get(f"{namespace}:jobs:result:{added[0].id}"))
    assert (result["success"], result["error"]["message"], result["error"]["name"]) == (False, "broken", "KeyError")


async def test_a_dead_job_is_replayed_from_the_start(queue, redis, namespace, consume, claimed):
    added = await queue.add(1, attempts=1)
    consumer = consume()
    [claim] = await claimed(consumer)
    await consumer.settle([Failed(claim, "broken")], 0)
    await queue.admin.retry(added.id)
    assert await redis.llen(f"{namespace}:jobs:deadletter") == 0
    assert (await document(redis, namespace, added.id))["attempts"] == 0
    assert await redis.lrange(f"{namespace}:jobs:waiting", 0, -1) == [added.id]
    [again] = await claimed(consumer)
    assert (again.job.id, again.job.attempts_made) == (added.id, 0)


async def test_a_worker_registers_beats_and_leaves(queue, redis, namespace, work):
    native = BridgeMQWorker(server_id="w1", stack="py", region="eu", capabilities=["gpu", "email"])
    began = time.monotonic()
    async with work(lambda job: None, native=native):
        about = json.loads(await eventually(lambda: redis.get(f"{namespace}:workers:w1")))
        assert about["lastSeen"] > 1.6e12
        assert (about["serverId"], about["stack"], about["region"]) == ("w1", "py", "eu")
        assert about["capabilities"] == ["email", "gpu"]
        assert isinstance(about["pid"], int)
        assert await redis.smembers(f"{namespace}:workers:active") == {"w1"}
        assert_left(await redis.pttl(f"{namespace}:workers:heartbeat:w1") / 1000, of=30, since=began)
    assert [key for key in await keys_of(redis, namespace) if key.startswith(("workers", "scheduler"))] == []


async def test_pausing_is_the_specs_own_set_and_a_star_pauses_everything(queue, peer, consume, claimed):
    paused = peer.key("queues", "paused")
    await queue.add(1)
    await queue.admin.pause()
    assert await peer.redis.smembers(paused) == {"mail"}
    assert await peer.claim() is None
    await queue.admin.resume()
    await peer.redis.sadd(paused, "*")
    assert await queue.admin.paused()
    assert await claimed(consume()) == []
    await peer.redis.delete(paused)
    assert len(await claimed(consume())) == 1


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"id": "x" * 256}, "id"),
        ({"id": "x:gone"}, "id"),
        ({"id": "a\nb"}, "id"),
        ({"priority": 0}, "priority"),
        ({"priority": 11}, "priority"),
        ({"backoff": Backoff.fixed(1, jitter=0.5)}, "backoff.jitter"),
        ({"target": Target(server="active")}, "server_id"),
        ({"extra": {"maxConcurent": 1}}, "extra.maxConcurent"),
        ({"extra": {"skipOn": "KeyError"}}, "extra.skipOn"),
        ({"extra": {"overlap": "skip"}}, "extra.overlap"),
    ],
)
async def test_what_the_protocol_has_no_place_for_is_refused(queue, redis, namespace, options, field):
    with pytest.raises(InvalidOption) as refusal:
        await queue.add(1, **options)
    assert refusal.value.field == field
    assert await keys_of(redis, namespace) == []


async def test_two_claims_of_one_server_id_are_told_apart(queue, consume, claimed):
    """A lock holds only the server id; the claim beside it has a token of its own."""
    await queue.add(1)
    first, second = consume("w1", lease=0.1, recover_every=0.05), consume("w1", recover_every=0.05)
    [stale] = await claimed(first)

    async def taken_back():
        return [job for duty in second.duties() for job in (await duty.run()).recovered]

    await eventually(taken_back)
    [fresh] = await claimed(second)
    assert (await first.settle([Completed(stale, b"1")], 0)).verdicts[0].value == "lost"
    assert list(await first.extend([stale])) == [stale]
    assert (await second.settle([Completed(fresh, b"2")], 0)).verdicts[0].value == "completed"
