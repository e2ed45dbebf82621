"""Failed tries: how long they wait, when they end, where they go next."""

from __future__ import annotations

import json

import pytest

from jobwire import Backoff, JobFailed, Target
from jobwire.backends.bridgemq.work.retry import curve, decide
from jobwire.boundary import Claim, Failed
from jobwire.model import Job

HOUR = 3600


@pytest.mark.parametrize(
    ("rule", "waits"),
    [
        ({"type": "fixed", "delay": 500}, [500, 500, 500]),
        ({"type": "linear", "delay": 500}, [500, 1000, 1500]),
        ({"type": "exponential", "delay": 500}, [500, 1000, 2000]),
        ({"type": "exponential", "delay": 500, "maxDelay": 900}, [500, 900, 900]),
        ({}, [0, 0, 0]),
        ({"type": "fixed", "delay": "soon"}, [0, 0, 0]),
        ({"type": "fixed", "delay": -(10**400)}, [0, 0, 0]),
    ],
)
def test_the_wait_follows_the_rule(rule, waits):
    assert [
        decide(failed(), {"retry": {"attempts": 9, "backoff": rule}, "attempts": made}, HOUR).delay for made in range(3)
    ] == waits


@pytest.mark.parametrize(("rng", "expected"), [(0.0, 750), (0.5, 1000), (1.0, 1250)])
def test_jitter_spreads_by_a_quarter_to_both_sides(rng, expected):
    assert curve({"type": "fixed", "delay": 1000, "jitter": True}, HOUR).after(1, lambda: rng) == expected / 1000


def test_the_cap_holds_after_the_jitter_too():
    assert curve({"type": "fixed", "delay": 1000, "maxDelay": 1000, "jitter": True}, HOUR).after(1, lambda: 1.0) == 1
    assert curve({"type": "exponential", "delay": 1000}, HOUR).after(5000) == HOUR
    assert curve({"type": "exponential", "delay": 10**400}, HOUR).after(2) == HOUR


def failed():
    return Failed(Claim(Job("1", "mail", "mail", None), "t"), "no")


def test_a_job_that_says_nothing_is_retried_as_the_peer_would():
    waits = [decide(failed(), {"attempts": made}, 3600).delay for made in range(4)]
    assert waits == [2000, 4000, 8000, None]


def local_error():
    class Refused(Exception):
        """Its qualified name has `<locals>` in it."""

    return Refused("no")


ERRORS = {
    "KeyError": KeyError("customer"),
    "Refused": local_error(),
    "ExceptionGroup": ExceptionGroup("two", [ValueError(1), KeyError(2)]),
    "ConnectionResetError": ConnectionResetError("a line\nValueError: that looks like the end of a stack"),
    "HTTPStatusError": type("HTTPStatusError", (Exception,), {"__module__": "some.lib"})("503"),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_that_is_to_be_skipped_ends_the_job_at_once(queue, work, peer, name):
    runs = []

    async def handler(job):
        runs.append(job.id)
        raise ERRORS[name]

    added = await queue.add(1, attempts=5, extra={"skipOn": [name]})
    async with work(handler):
        with pytest.raises(JobFailed):
            await added.wait(timeout=10)
    assert len(runs) == 1
    assert json.loads(await peer.redis.get(peer.key("jobs", "result", added.id)))["error"]["name"] == name


def fail_in_a_child(job):
    raise local_error()


async def test_the_name_of_an_error_in_a_child_process_is_its_own(queue, work):
    added = await queue.add(1, attempts=5, extra={"skipOn": ["Refused"]})
    async with work(fail_in_a_child, executor="process") as worker:
        with pytest.raises(JobFailed):
            await added.wait(timeout=30)
    assert worker.stats.failed == 1
    assert worker.stats.claimed == 1


async def test_an_error_that_reroutes_frees_the_job_from_its_server(queue, peer, consume, claimed):
    added = await queue.add(1, attempts=3, target=Target(server="w1", stack=("py",)), extra={"rerouteOn": ["OSError"]})
    consumer = consume("w1")
    [claim] = await claimed(consumer)
    await consumer.settle([Failed(claim, "disk full", kind="OSError")], 0)
    stored = json.loads(await peer.redis.get(peer.key("jobs", "data", added.id)))
    assert (stored["target"], stored["attempts"]) == ({"stack": ["py"], "mode": "any"}, 1)
    assert await claimed(consumer) == []
    assert [claim.job.id for claim in await claimed(consume("w2", stack="py"))] == [added.id]


async def test_a_retry_keeps_its_place_by_priority_and_resets_progress(queue, peer, consume, claimed):
    urgent = await queue.add("urgent", attempts=2, priority=9)
    await queue.add("plain")
    consumer = consume()
    [claim] = await claimed(consumer)
    await queue.connection.backend.progress.update_progress("mail", urgent.id, b"10")
    await consumer.settle([Failed(claim, "once")], 0)
    assert (await queue.get(urgent.id)).progress is None
    assert [job.data for job in await queue.jobs()] == ["urgent", "plain"]


async def test_a_failed_try_leaves_its_result_and_waits_in_the_delayed_set(queue, peer, consume, claimed):
    added = await queue.add(1, attempts=2, backoff=Backoff.fixed(60))
    consumer = consume()
    [claim] = await claimed(consumer)
    await consumer.settle([Failed(claim, "busy")], 0)
    assert await peer.redis.zscore(peer.key("jobs", "delayed"), added.id)
    assert await peer.redis.get(peer.key("jobs", "status", added.id)) == "delayed"
    assert json.loads(await peer.redis.get(peer.key("jobs", "result", added.id)))["error"]["message"] == "busy"


@pytest.mark.parametrize("stored", [-(2**60), "x", None])
async def test_a_count_of_attempts_that_is_none_is_counted_from_zero(*, queue, peer, consume, claimed, stored):
    job_id = await peer.dispatch("mail", 1, retry={"attempts": 1}, attempts=stored)
    consumer = consume()
    for _ in range(2):
        [claim] = await claimed(consumer)
        await consumer.settle([Failed(claim, "no")], 0)
    assert (await queue.get(job_id)).native_state == "dead"


async def test_numbers_that_javascript_can_not_hold_survive_a_retry(queue, peer, consume, claimed):
    job_id = await peer.dispatch("mail", {"big": 12345678901234567890}, retry={"attempts": 1})
    consumer = consume()
    [claim] = await claimed(consumer)
    await consumer.settle([Failed(claim, "once")], 0)
    [again] = await claimed(consumer)
    assert (again.job.id, again.job.data) == (job_id, {"big": 12345678901234567890})
