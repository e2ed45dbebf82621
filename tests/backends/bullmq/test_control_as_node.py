"""Edits, bulk moves, limits, events and unique keys leave the store as Node BullMQ 5.62 leaves it."""

from __future__ import annotations

import time

import pytest

from jobwire import Rate
from jobwire.model import Limits, State

from .peer import node

QUEUE = "const q = queueOf(p); await q.waitUntilReady();"
LINES = (
    QUEUE
    + """
for (const id of ["A", "B", "C"]) await q.add("n", { id }, { jobId: id });
for (const id of ["X", "Y", "Z"]) await q.add("n", { id }, { jobId: id, priority: 2 });
await q.add("n", {}, { jobId: "D", delay: 60000 }); await q.add("n", {}, { jobId: "E", delay: 90000, priority: 4 });
"""
)
FINISHED = (
    QUEUE
    + """
for (const [id, opts] of [["g1", {}], ["b1", { priority: 3 }], ["g2", { lifo: true }], ["b2", {}]]) {
  await q.add(id, {}, { jobId: id, ...opts });
}
// Each in a millisecond of its own: those that finish in the same one are ordered by their ids.
await work(p, 4, async (job) => {
  await new Promise((go) => setTimeout(go, 3));
  if (job.name[0] === "b") throw new Error("boom");
});
"""
)
LOGGED = (
    QUEUE + 'const j = await q.add("n", {}, { jobId: "A" }); for (const line of ["1", "2", "3"]) await j.log(line);'
)
JOB = "const job = (id) => Job.fromId(q, id);"


async def _steps(*steps):
    for step in steps:
        await step


CASES = {
    "new data": (
        LINES,
        'await (await job("A")).updateData({ s: "é", n: [1, null] });',
        lambda b: b.edits.update_data("q", "A", '{"s":"é","n":[1,null]}'.encode()),
    ),
    "a priority for a plain job": (
        LINES,
        'await (await job("B")).changePriority({ priority: 2 });',
        lambda b: b.edits.change_priority("q", "B", 2, False),
    ),
    "a priority for a plain job, in front": (
        LINES,
        'await (await job("B")).changePriority({ priority: 2, lifo: true });',
        lambda b: b.edits.change_priority("q", "B", 2, True),
    ),
    "another priority": (
        LINES,
        'await (await job("Y")).changePriority({ priority: 1 });',
        lambda b: b.edits.change_priority("q", "Y", 1, False),
    ),
    "no priority any more": (
        LINES,
        'await (await job("Y")).changePriority({ priority: 0 });',
        lambda b: b.edits.change_priority("q", "Y", 0, False),
    ),
    "no priority any more, in front": (
        LINES,
        'await (await job("Y")).changePriority({ priority: 0, lifo: true });',
        lambda b: b.edits.change_priority("q", "Y", 0, True),
    ),
    "a priority for a delayed job": (
        LINES,
        'await (await job("D")).changePriority({ priority: 7 });',
        lambda b: b.edits.change_priority("q", "D", 7, False),
    ),
    "a priority in a paused queue": (
        LINES + "await q.pause();",
        """await (await job("Y")).changePriority({ priority: 0 });
        await (await job("A")).changePriority({ priority: 3 });""",
        lambda b: _steps(b.edits.change_priority("q", "Y", 0, False), b.edits.change_priority("q", "A", 3, False)),
    ),
    "another delay": (
        LINES,
        'await (await job("D")).changeDelay(200000);',
        lambda b: b.edits.change_delay("q", "D", 200),
    ),
    "logs cleared": (LOGGED, 'await (await job("A")).clearLogs();', lambda b: b.edits.clear_logs("q", "A", 0)),
    "logs cut": (LOGGED, 'await (await job("A")).clearLogs(2);', lambda b: b.edits.clear_logs("q", "A", 2)),
    "all failed jobs again": (
        FINISHED,
        "await q.retryJobs();",
        lambda b: b.bulk.retry_all("q", State.FAILED, time.time(), 1000),
    ),
    "all completed jobs again": (
        FINISHED,
        'await q.retryJobs({ state: "completed" });',
        lambda b: b.bulk.retry_all("q", State.COMPLETED, time.time(), 1000),
    ),
    "all failed jobs again in a paused queue": (
        FINISHED + "await q.pause();",
        "await q.retryJobs();",
        lambda b: b.bulk.retry_all("q", State.FAILED, time.time(), 1000),
    ),
    "nothing to run again": (
        LINES,
        "await q.retryJobs();",
        lambda b: b.bulk.retry_all("q", State.FAILED, time.time(), 1000),
    ),
    "all delayed jobs now": (LINES, "await q.promoteJobs();", lambda b: b.bulk.promote_all("q", 1000)),
    "a global concurrency": (
        QUEUE,
        "await q.setGlobalConcurrency(4);",
        lambda b: b.limits.limit_concurrency("q", 4),
    ),
    "no global concurrency": (
        QUEUE + "await q.setGlobalConcurrency(4);",
        "await q.removeGlobalConcurrency();",
        lambda b: b.limits.limit_concurrency("q", None),
    ),
    "a global rate": (
        QUEUE,
        "await q.setGlobalRateLimit(10, 2500);",
        lambda b: b.limits.limit_rate("q", Rate(10, per=2.5)),
    ),
    "no global rate": (
        QUEUE + "await q.setGlobalRateLimit(10, 2500);",
        "await q.removeGlobalRateLimit();",
        lambda b: b.limits.limit_rate("q", None),
    ),
    "a throttle": (QUEUE, "await q.rateLimit(60000);", lambda b: b.limits.throttle("q", 60)),
    "no throttle": (
        QUEUE + "await q.rateLimit(60000);",
        "await q.removeRateLimitKey();",
        lambda b: b.limits.throttle("q", 0),
    ),
    "an event of one's own": (
        LINES,
        """const tell = new QueueEventsProducer("q", { connection, prefix: p });
        await tell.publishEvent({ eventName: "lunch", place: "É", n: "1" });""",
        lambda b: b.event_control.publish("q", "lunch", {"place": "É", "n": "1"}),
    ),
    "all events trimmed": (LINES, "await q.trimEvents(0);", lambda b: b.event_control.trim_events("q", 0)),
    "a unique key released": (
        QUEUE + 'await q.add("u", {}, { jobId: "U", deduplication: { id: "k", ttl: 60000 } });',
        'await q.removeDeduplicationKey("k");',
        lambda b: b.unique_owners.release_unique("q", "k"),
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_leaves_what_node_leaves(case: str, same_as_node) -> None:
    arrange, act, ours = CASES[case]
    await same_as_node(arrange, f"{QUEUE} {JOB} {act}", ours)


async def test_a_retry_that_resets_attempts_leaves_what_a_newer_node_leaves(
    jobwire_valkey, backend, prefix, redis, keys
) -> None:
    await node(jobwire_valkey.url, [prefix, f"{prefix}-node"], f"for (const p of prefixes) {{ {FINISHED} }}")
    reset = """const q = queueOf(prefixes[1]); const job = await Job.fromId(q, "b1");
    await job.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true });"""
    await node(jobwire_valkey.url, [prefix, f"{prefix}-node"], reset, peer="bullmq-6")
    await backend.edits.retry_anew("q", ["b1"])
    theirs, ours = await redis.hgetall(f"{prefix}-node:q:b1"), await redis.hgetall(keys.job("b1"))
    for timed in (b"timestamp", b"stacktrace"):
        del theirs[timed], ours[timed]
    assert ours == theirs
    assert b"atm" not in ours


async def test_limits_that_node_has_set_are_read(jobwire_valkey, backend, prefix) -> None:
    assert await backend.limits.limits("q") == Limits()
    script = "const q = queueOf(prefixes[0]); await q.setGlobalConcurrency(3); await q.setGlobalRateLimit(10, 1500);"
    await node(jobwire_valkey.url, [prefix], script + "await q.rateLimit(60000);")
    found = await backend.limits.limits("q")
    assert (found.concurrency, found.rate) == (3, Rate(10, per=1.5))
    assert 50 < found.blocked_for <= 60


@pytest.mark.parametrize(
    ("most", "duration", "rate"),
    [("0", "1000", None), ("5", "0", None), ("many", "1000", None), ("5", "9" * 16, Rate(5, per=36500 * 86400))],
)
async def test_any_numbers_stored_as_a_limit_can_be_read(backend, most, duration, rate) -> None:
    keys = backend._server.keys("q")
    await backend._server.store.call("HSET", keys.meta, "max", most, "duration", duration)
    assert (await backend.limits.limits("q")).rate == rate


async def test_the_owner_of_a_unique_key_that_node_has_taken_is_read(jobwire_valkey, backend, prefix) -> None:
    script = 'await queueOf(prefixes[0]).add("u", {}, { jobId: "U", deduplication: { id: "k:é" } });'
    await node(jobwire_valkey.url, [prefix], script)
    assert await backend.unique_owners.unique_owner("q", "k:é") == "U"
    assert await backend.unique_owners.unique_owner("q", "other") is None
    assert await backend.unique_owners.release_unique("q", "other") is False


async def test_moves_of_all_jobs_go_in_steps(jobwire_valkey, backend, prefix) -> None:
    await node(jobwire_valkey.url, [prefix], f"const p = prefixes[0]; {FINISHED}")
    steps = [await backend.bulk.retry_all("q", State.FAILED, time.time(), 1) for _ in range(3)]
    assert steps == [1, 1, 0]
