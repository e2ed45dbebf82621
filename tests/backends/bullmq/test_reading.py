"""Reading a queue: jobs by id and by page, numbers, logs, workers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from redis.asyncio import Redis

from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend
from jobwire.errors import InvalidOption
from jobwire.model import Page, State

from .peer import node


async def store(redis: Redis, keys: Keys, *ids: str, **fields: Any) -> None:
    whole = {
        "name": "n",
        "data": "{}",
        "opts": "{}",
        "timestamp": 1_790_000_000_000,
        "delay": 0,
        "priority": 0,
        **fields,
    }
    async with redis.pipeline(transaction=False) as batch:
        for job_id in ids:
            batch.hset(keys.job(job_id), mapping=whole)
        await batch.execute()


async def one_job_in_each_place(redis: Redis, keys: Keys) -> dict[str, tuple[State, str]]:
    due = 1_900_000_000_000
    await store(redis, keys, "w", "p", "r", "d", "a", "c", "f", "k", "lost")
    await redis.lpush(keys.wait, "w")
    await redis.lpush(keys.paused, "p")
    await redis.zadd(keys.prioritized, {"r": 2**32 + 1})
    await redis.zadd(keys.delayed, {"d": due * 4096 + 5})
    await redis.lpush(keys.active, "a")
    await redis.zadd(keys.completed, {"c": due})
    await redis.zadd(keys.failed, {"f": due})
    await redis.zadd(keys.waiting_children, {"k": due})
    return {
        "w": (State.WAITING, "waiting"),
        "p": (State.WAITING, "paused"),
        "r": (State.WAITING, "prioritized"),
        "d": (State.DELAYED, "delayed"),
        "a": (State.ACTIVE, "active"),
        "c": (State.COMPLETED, "completed"),
        "f": (State.FAILED, "failed"),
        "k": (State.WAITING_CHILDREN, "waiting-children"),
        "lost": (State.WAITING, "unknown"),
    }


async def test_jobs_are_read_with_the_state_of_the_place_they_are_in(redis, keys, backend: Backend) -> None:
    expected = await one_job_in_each_place(redis, keys)

    jobs = await backend.get("q", list(expected))

    assert {job.id: (job.state, job.native_state) for job in jobs if job} == expected


async def test_many_jobs_are_read_in_the_order_asked_for(redis, keys, backend: Backend) -> None:
    ids = [f"j{n}" for n in range(1200)]
    await store(redis, keys, *ids)
    await redis.lpush(keys.wait, *ids[:1100])
    await redis.lpush(keys.paused, *ids[1100:])

    jobs = await backend.get("q", ids)

    assert [job.id for job in jobs if job] == ids
    assert {job.native_state for job in jobs[:1100] if job} == {"waiting"}
    assert {job.native_state for job in jobs[1100:] if job} == {"paused"}


async def test_an_id_asked_for_twice_is_answered_twice(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "a")
    await redis.lpush(keys.wait, "a")

    jobs = await backend.get("q", ["a"] * 12)

    assert [(job.id, job.native_state) for job in jobs if job] == [("a", "waiting")] * 12


@pytest.mark.parametrize("word", ["meta", "wait", "events", "repeat:s", "nobody", "1:logs"])
async def test_a_key_of_the_queue_is_not_taken_for_a_job(word: str, redis, keys, backend: Backend) -> None:
    await redis.hset(keys.meta, "opts.maxLenEvents", 10000)
    await redis.lpush(keys.wait, "1")
    await redis.xadd(keys.events, {"event": "x"})
    await redis.hset(keys.scheduler("s"), mapping={"name": "n", "data": "{}", "ic": 1})
    await redis.rpush(keys.logs("1"), "line")

    assert await backend.get("q", [word]) == [None]
    assert [answer.value for answer in await backend.remove("q", [word])] == ["not found"]
    assert [answer.value for answer in await backend.retry("q", [word])] == ["not found"]
    assert (await backend.progress.update_progress("q", word, b"1")).value == "not found"
    assert (await backend.logs.log("q", word, "line", 0)).value == "not found"
    assert await redis.exists(keys.meta, keys.wait, keys.events, keys.scheduler("s"), keys.logs("1")) == 5


async def test_a_delayed_job_tells_when_it_is_due_even_after_a_retry(redis, keys, backend: Backend) -> None:
    due = datetime(2030, 1, 2, 3, 4, 5, 678_000, UTC)
    await store(redis, keys, "d", delay=200)
    await redis.zadd(keys.delayed, {"d": round(due.timestamp() * 1000) * 4096 + 7})

    [by_id] = await backend.get("q", ["d"])
    [by_page] = await backend.jobs("q", State.DELAYED, 10, None)

    assert (by_id.run_at, by_page.run_at) == (due, due)


async def test_all_states_are_counted_at_once(redis, keys, backend: Backend) -> None:
    await one_job_in_each_place(redis, keys)

    assert await backend.counts("q") == {
        State.WAITING: 3,
        State.DELAYED: 1,
        State.ACTIVE: 1,
        State.COMPLETED: 1,
        State.FAILED: 1,
        State.WAITING_CHILDREN: 1,
    }


async def pages(backend: Backend, state: State, limit: int) -> list[Page]:
    found = [await backend.jobs("q", state, limit, None)]
    while found[-1].cursor is not None:
        found.append(await backend.jobs("q", state, limit, found[-1].cursor))
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
async def test_waiting_jobs_come_in_the_order_in_which_they_would_run(
    limit: int, redis, keys, backend: Backend
) -> None:
    in_order = ["p1", "p2", "w1", "w2", "w3", "r1", "r2"]
    await store(redis, keys, *in_order)
    await redis.lpush(keys.paused, "p1", "p2")
    await redis.lpush(keys.wait, "w1", "w2", "w3")
    await redis.zadd(keys.prioritized, {"r2": 2 * 2**32 + 1, "r1": 2**32 + 2})

    found = await pages(backend, State.WAITING, limit)

    assert [job.id for page in found for job in page] == in_order
    assert all(len(page) <= limit for page in found)


async def test_finished_jobs_come_newest_first(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "old", "new", "newer")
    await redis.zadd(keys.completed, {"old": 1, "new": 2, "newer": 2.5})

    assert [[job.id for job in page] for page in await pages(backend, State.COMPLETED, 2)] == [
        ["newer", "new"],
        ["old"],
    ]


async def test_active_jobs_come_in_the_order_in_which_they_were_taken(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "first", "second")
    await redis.lpush(keys.active, "first", "second")

    assert [job.id for job in await backend.jobs("q", State.ACTIVE, 10, None)] == ["first", "second"]


async def test_a_page_may_be_larger_than_what_the_server_reads_at_once(redis, keys, backend: Backend) -> None:
    ids = [f"j{n}" for n in range(1300)]
    await store(redis, keys, *ids)
    await redis.lpush(keys.wait, *ids)

    first = await backend.jobs("q", State.WAITING, 1200, None)
    second = await backend.jobs("q", State.WAITING, 1200, first.cursor)

    assert [job.id for job in [*first, *second]] == ids
    assert second.cursor is None


async def test_jobs_that_finish_between_two_pages_shift_nothing(redis, keys, backend: Backend) -> None:
    await store(redis, keys, *"abcdef")
    await redis.zadd(keys.completed, {"a": 1, "b": 2, "c": 3, "d": 4})
    first = await backend.jobs("q", State.COMPLETED, 2, None)
    await redis.zadd(keys.completed, {"e": 5, "f": 6})

    second = await backend.jobs("q", State.COMPLETED, 2, first.cursor)

    assert [job.id for job in [*first, *second]] == ["d", "c", "b", "a"]


async def test_jobs_that_run_between_two_pages_leave_none_of_the_others_out(redis, keys, backend: Backend) -> None:
    await store(redis, keys, *"abcdef")
    await redis.lpush(keys.wait, *"abcdef")
    first = await backend.jobs("q", State.WAITING, 2, None)
    await redis.rpop(keys.wait, 3)

    second = await backend.jobs("q", State.WAITING, 10, first.cursor)

    assert [job.id for job in first] == ["a", "b"]
    assert [job.id for job in second] == ["d", "e", "f"]


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("resumed", [False, True], ids=["paused", "resumed"])
@pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
async def test_a_page_goes_on_in_the_list_that_a_pause_or_resume_moved_the_jobs_to(
    redis, keys, backend: Backend, *, reverse: bool, resumed: bool, gone: bool
) -> None:
    before, after = (keys.paused, keys.wait) if resumed else (keys.wait, keys.paused)
    in_order = [*"fedcba"] if reverse else [*"abcdef"]
    await store(redis, keys, *"abcdef", "r")
    await redis.lpush(before, *"abcdef")
    await redis.zadd(keys.prioritized, {"r": 2**32 + 1})
    first = await backend.jobs("q", State.WAITING, 3 if reverse else 2, None, reverse=reverse)
    await redis.rename(before, after)
    if gone:
        await redis.lrem(after, 1, first[-1].id)

    second = await backend.jobs("q", State.WAITING, 10, first.cursor, reverse=reverse)

    assert [job.id for job in first] == (["r", "f", "e"] if reverse else ["a", "b"])
    # Forward, if the job of the cursor has left, the list is read from its start.
    repeated = ["a"] if gone and not reverse else []
    assert [job.id for job in second] == repeated + in_order[2:] + ([] if reverse else ["r"])


async def test_a_finished_job_that_was_removed_between_two_pages_leaves_no_gap(redis, keys, backend: Backend) -> None:
    await store(redis, keys, *"abcd")
    await redis.zadd(keys.failed, {"a": 1, "b": 2, "c": 3, "d": 4})
    first = await backend.jobs("q", State.FAILED, 2, None)
    await backend.remove("q", ["c"])

    second = await backend.jobs("q", State.FAILED, 2, first.cursor)

    assert [job.id for job in second] == ["b", "a"]


@pytest.mark.parametrize("skip", range(9))
async def test_skipping_goes_from_one_list_into_the_next(skip: int, redis, keys, backend: Backend) -> None:
    in_order = ["p1", "p2", "w1", "w2", "w3", "r1", "r2"]
    await store(redis, keys, *in_order)
    await redis.lpush(keys.paused, "p1", "p2")
    await redis.lpush(keys.wait, "w1", "w2", "w3")
    await redis.zadd(keys.prioritized, {"r2": 2 * 2**32 + 1, "r1": 2**32 + 2})

    for reverse, expected in ((False, in_order), (True, in_order[::-1])):
        for limit in (1, 2, 4, 10):
            page = await backend.jobs("q", State.WAITING, limit, None, skip=skip, reverse=reverse)
            assert [job.id for job in page] == expected[skip : skip + limit]


async def test_a_large_page_in_reverse_begins_where_it_was_asked_to(redis, keys, backend: Backend) -> None:
    ids = [f"j{n}" for n in range(1300)]
    await store(redis, keys, *ids)
    await redis.lpush(keys.wait, *ids)

    first = await backend.jobs("q", State.WAITING, 1100, None, skip=50, reverse=True)
    second = await backend.jobs("q", State.WAITING, 1100, first.cursor, reverse=True)

    assert [job.id for job in [*first, *second]] == ids[::-1][50:]


async def test_jobs_that_run_between_two_pages_in_reverse_leave_none_out(redis, keys, backend: Backend) -> None:
    await store(redis, keys, *"abcdefgh")
    await redis.lpush(keys.wait, *"abcdef")
    first = await backend.jobs("q", State.WAITING, 2, None, reverse=True)
    await redis.rpop(keys.wait, 2)
    await redis.lpush(keys.wait, *"gh")

    second = await backend.jobs("q", State.WAITING, 10, first.cursor, reverse=True)

    assert [job.id for job in first] == ["f", "e"]
    assert [job.id for job in second] == ["d", "c"]


async def test_reading_in_reverse_ends_although_the_last_job_shown_is_always_gone(
    redis, keys, backend: Backend
) -> None:
    """The job of the cursor runs or is removed before each page, while others are added."""
    await store(redis, keys, *"abcdef", *(f"new{n}" for n in range(20)))
    await redis.lpush(keys.wait, *"abcdef")
    seen: list[str] = []
    cursor: str | None = None
    for turn in range(20):
        page = await backend.jobs("q", State.WAITING, 2, cursor, reverse=True)
        seen += [job.id for job in page]
        cursor = page.cursor
        if cursor is None:
            break
        await redis.lrem(keys.wait, 1, page[-1].id)
        await redis.lpush(keys.wait, f"new{turn}")

    assert seen == ["f", "e", "d", "c", "b", "a"]


async def test_a_list_entry_whose_job_is_gone_is_passed_over(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "there")
    await redis.lpush(keys.wait, "gone", "there")

    assert [job.id for job in await backend.jobs("q", State.WAITING, 10, None)] == ["there"]


async def test_a_cursor_of_another_state_is_refused(redis, keys, backend: Backend) -> None:
    await store(redis, keys, *"ab")
    await redis.lpush(keys.wait, *"ab")
    page = await backend.jobs("q", State.WAITING, 1, None)

    with pytest.raises(InvalidOption, match="cursor"):
        await backend.jobs("q", State.FAILED, 1, page.cursor)
    with pytest.raises(InvalidOption, match="cursor"):
        await backend.jobs("q", State.WAITING, 1, "")


async def test_a_state_that_bullmq_does_not_have_has_no_jobs(backend: Backend) -> None:
    assert await backend.jobs("q", State.CANCELLED, 10, None) == []


async def test_a_job_that_a_foreign_writer_broke_can_still_be_listed(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "bad", data=b"\xff{", opts="[", timestamp="never")
    await redis.set(keys.job("text"), "no hash")
    await redis.lpush(keys.wait, "bad", "text")

    [job] = await backend.jobs("q", State.WAITING, 10, None)

    assert (job.id, job.data, job.created_at) == ("bad", None, None)
    assert job.raw["data"] == b"\xff{"


async def test_logs_are_read_oldest_first(redis, keys, backend: Backend) -> None:
    await store(redis, keys, "a")
    for line in ("one", "zwei ü", "three"):
        await backend.logs.log("q", "a", line, 2)

    assert await backend.logs.logs("q", "a") == ["zwei ü", "three"]
    assert await backend.logs.logs("q", "nobody") == []


async def test_workers_of_node_and_ours_are_listed(jobwire_valkey, prefix, redis, keys, backend: Backend) -> None:
    script = """
    const options = { connection, prefix: prefixes[0], autorun: true };
    const workers = [new Worker("q", null, { ...options, name: "named" }), new Worker("q", async () => {}, options),
      new Worker("other", async () => {}, options)];
    for (const worker of workers) { worker.on("error", () => {}); await worker.waitUntilReady(); }
    const c = await queueOf(prefixes[0]).client;
    await until(async () => Number(await c.exists(`${prefixes[0]}:q:seen`)));
    """
    peer = asyncio.create_task(node(jobwire_valkey.url, [prefix], script))
    try:
        while len(found := await backend.workers.workers("q")) < 2:
            assert not peer.done(), peer.result()
            await asyncio.sleep(0.02)
    finally:
        await redis.set(f"{keys.base}seen", 1)
        await peer

    assert sorted(worker.name for worker in found) == ["", "named"]
    assert all(worker.address.startswith("127.0.0.1:") for worker in found)


async def test_the_reader_of_events_is_no_worker(redis, keys, backend: Backend, jobwire_valkey) -> None:
    async with Redis.from_url(jobwire_valkey.url, client_name=keys.events_connection_name()) as reader:
        await reader.ping()
        assert await backend.workers.workers("q") == []
