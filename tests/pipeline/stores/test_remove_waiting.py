"""Jobs that a move has verified are removed from its source, each only if it still waits there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
import redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Acted
from jobwire.model import State
from jobwire.options import NewJob, Parent, Unique
from jobwire.urls import parse

from .redis_rig import QUEUE, Rig, rig_at

KEPT = (Acted.LOCKED, Acted.WRONG_STATE)


@pytest.fixture
async def rig(url: str) -> AsyncIterator[Rig]:
    async with rig_at(url) as rig:
        await rig.backend.register(QUEUE)
        yield rig


@pytest.fixture
async def bullmq(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bullmq")) as rig:
        yield rig


@pytest.fixture
async def bridgemq(place: Callable[[str], str]) -> AsyncIterator[Rig]:
    async with rig_at(place("bridgemq")) as rig:
        yield rig


async def states(rig: Rig) -> dict[str, State]:
    return {job_id: job.state for job_id, job in (await rig.all_jobs()).items()}


async def test_jobs_that_wait_are_removed_and_those_in_other_states_stay(rig: Rig) -> None:
    await rig.add(*(NewJob(n) for n in range(4)))
    done, failed = await rig.complete(1), await rig.fail(1)
    running = [one.job.id for one in await rig.claim(1)]
    late = [one.id for one in await rig.add(NewJob(5, delay=timedelta(hours=1)), NewJob(6, delay=timedelta(hours=1)))]
    [waiting] = [job_id for job_id, state in (await states(rig)).items() if state is State.WAITING]
    unknown = waiting[:-4] + ("0000" if waiting[-4:] != "0000" else "1111")

    answers = rig.store.remove_waiting([waiting, *done, unknown, *failed, *running, late[1], waiting])

    assert answers[:1] + answers[5:6] == [Acted.DONE, Acted.DONE]
    assert answers[2] is Acted.NOT_FOUND
    assert {answers[1], answers[3], answers[4]} <= {*KEPT}
    assert await states(rig) == {
        done[0]: State.COMPLETED,
        failed[0]: State.FAILED,
        running[0]: State.ACTIVE,
        late[0]: State.DELAYED,
    }
    assert rig.store.remove_waiting([waiting, late[1]]) == [Acted.NOT_FOUND] * 2


@pytest.mark.parametrize("step", [1, -1, 7], ids=["in their order", "in the opposite order", "in any order"])
async def test_many_jobs_are_removed_whatever_the_order_of_their_ids(rig: Rig, step: int) -> None:
    priorities = [None] if rig.backend.capabilities.priority is None else [None, 3, 9]
    await rig.add(*(NewJob(n, priority=priorities[n % len(priorities)]) for n in range(1500)))
    ids = [job_id for job_id, job in (await rig.all_jobs()).items() if job.data % 5]
    chosen = ids[::step] if step != 7 else [ids[n * 7 % len(ids)] for n in range(len(ids))]

    assert set(rig.store.remove_waiting(chosen)) == {Acted.DONE}

    assert sorted(job.data for job in (await rig.all_jobs()).values()) == list(range(0, 1500, 5))
    claimed = [one.job.data for _ in range(3) for one in await rig.claim(100)]
    assert sorted(claimed) == list(range(0, 1500, 5))


async def test_nothing_of_a_removed_job_is_left(rig: Rig) -> None:
    unique = rig.backend.unique_owners is not None or rig.backend.capabilities.protocol == "pg-boss"
    new = NewJob(1, unique=Unique("one")) if unique else NewJob(1)
    [added] = await rig.add(new)
    if rig.backend.logs is not None:
        await rig.backend.logs.log(QUEUE, added.id, "a line", 0)

    assert rig.store.remove_waiting([added.id]) == [Acted.DONE]

    [again] = await rig.add(new)
    assert set(await rig.all_jobs()) == {again.id}
    assert rig.backend.logs is None or not await rig.backend.logs.logs(QUEUE, added.id)


# --- BullMQ: a job may belong to others, and to a schedule ----------------------------------------------------------


def dump(client: redis.Redis, rig: Rig) -> dict[str, Any]:
    """All that the store holds of the queue, events without their ids."""
    base = Keys(parse(rig.url).options["prefix"], QUEUE).base
    readers = {
        "hash": client.hgetall,
        "string": client.get,
        "list": lambda key: client.lrange(key, 0, -1),
        "zset": lambda key: client.zrange(key, 0, -1),
        "set": client.smembers,
        "stream": lambda key: [fields for _, fields in client.xrange(key)],
    }
    keys = sorted(client.scan_iter(match=f"{base}*", count=1000))
    found = {key.removeprefix(base): readers[client.type(key)](key) for key in keys}
    return {key: value for key, value in found.items() if not key.endswith(":lock")}


async def family(rig: Rig) -> list[str]:
    """Removable jobs of all kinds: plain, with a priority, late, with a key, a child, and a parent that may run."""
    waits = {"waitingChildren": True}
    await rig.add(NewJob(6, id="free", extra=waits), NewJob(7, id="done", parent=Parent("free", QUEUE)))
    await rig.complete(1)
    await rig.add(
        *(NewJob(n, id=f"plain-{n}") for n in range(3)),
        NewJob(1, id="urgent", priority=3),
        NewJob(2, id="late", delay=timedelta(hours=1)),
        NewJob(3, id="keyed", unique=Unique("one")),
        NewJob(4, id="parent", extra=waits),
        NewJob(5, id="child", parent=Parent("parent", QUEUE)),
    )
    for job_id in ("plain-1", "child"):
        await rig.backend.logs.log(QUEUE, job_id, "a line", 0)
    held = await states(rig)
    return [job_id for job_id, state in held.items() if state in (State.WAITING, State.DELAYED)]


async def test_bullmq_is_left_as_the_backends_own_removal_leaves_it(
    bullmq: Rig, place: Callable[[str], str], redis_client: redis.Redis
) -> None:
    async with rig_at(place("bullmq")) as other:
        ids, same = await family(bullmq), await family(other)
        assert ids == same
        assert {"free", "child", "keyed", "late"} <= {*ids}

        assert bullmq.store.remove_waiting(ids) == [Acted.DONE] * len(ids)
        assert await other.backend.remove(QUEUE, same) == [Acted.DONE] * len(ids)

        def comparable(rig: Rig) -> dict[str, Any]:
            found = dump(redis_client, rig)
            for fields in [*found.values(), *found["events"]]:
                if isinstance(fields, dict):
                    for name in ("timestamp", "processedOn", "finishedOn", "opts", "delay"):
                        fields.pop(name, None)
            return found

        assert comparable(bullmq) == comparable(other)


async def test_a_parent_whose_child_runs_stays(bullmq: Rig) -> None:
    await bullmq.add(NewJob(1, id="parent", extra={"waitingChildren": True}))
    await bullmq.add(NewJob(2, id="child", parent=Parent("parent", QUEUE)))
    await bullmq.claim(1)

    assert bullmq.store.remove_waiting(["parent", "child"]) == [Acted.LOCKED, Acted.LOCKED]
    assert await states(bullmq) == {"parent": State.WAITING_CHILDREN, "child": State.ACTIVE}


async def test_a_parent_that_waits_for_its_children_stays(bullmq: Rig) -> None:
    await bullmq.add(NewJob(1, id="parent", extra={"waitingChildren": True}))
    await bullmq.add(NewJob(2, id="child", parent=Parent("parent", QUEUE)))

    assert bullmq.store.remove_waiting(["parent"]) == [Acted.WRONG_STATE]
    assert await states(bullmq) == {"parent": State.WAITING_CHILDREN, "child": State.WAITING}


# --- BridgeMQ: peers take jobs without updating the index -----------------------------------------------------------


async def test_a_job_that_a_peer_has_taken_or_finished_stays(bridgemq: Rig, redis_client: redis.Redis) -> None:
    ids = [one.id for one in await bridgemq.add(*(NewJob(n) for n in range(4)))]
    base = parse(bridgemq.url).options["namespace"] + ":jobs:"
    for taken in ids[:2]:
        assert redis_client.lrem(base + "waiting", 1, taken) == 1
    redis_client.sadd(base + "active", ids[0])
    redis_client.set(f"{base}status:{ids[1]}", "completed")

    answers = bridgemq.store.remove_waiting(ids)

    assert answers == [Acted.LOCKED, Acted.WRONG_STATE, Acted.DONE, Acted.DONE]
    assert [redis_client.exists(f"{base}data:{one}") for one in ids] == [1, 1, 0, 0]


async def test_a_job_of_another_type_is_not_found(bridgemq: Rig) -> None:
    async with rig_at(bridgemq.url, "parcels") as other:
        [theirs] = await other.add(NewJob(1))
        assert bridgemq.store.remove_waiting([theirs.id]) == [Acted.NOT_FOUND]
        assert await states(other) == {theirs.id: State.WAITING}
