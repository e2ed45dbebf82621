"""Each operation of an operator leaves the store as Node BullMQ 5.62 leaves it, to the last field and event."""

from __future__ import annotations

import pytest

from jobwire.model import State

QUEUE = 'const q = queueOf(p); const q2 = queueOf(p, "q2"); const flows = new FlowProducer({ connection, prefix: p });'
ADD = QUEUE + 'await q.add("a", { n: 1 }, { jobId: "A" }); await q.add("b", {}, { jobId: "B", priority: 2 });'
FINISHED = (
    QUEUE
    + """
await q.add("good", {}, { jobId: "good", lifo: true }); await q.add("bad", {}, { jobId: "bad", priority: 3 });
await work(p, 2, async (job) => { if (job.name === "bad") throw new Error("boom"); return { ok: 1 }; });
"""
)
DELAYED = (
    QUEUE
    + """
await q.add("later", {}, { jobId: "plain", delay: 60000 });
await q.add("later", {}, { jobId: "ranked", delay: 60000, priority: 4 });
"""
)
FAMILY = (
    QUEUE
    + """
await q.add("first", {}, { jobId: "first" });
await flows.add({ name: "R", queueName: "q", opts: { jobId: "R", priority: 3 }, children: [
  { name: "a", queueName: "q", opts: { jobId: "a" } }, { name: "b", queueName: "q2", opts: { jobId: "b" } }] });
"""
)
GRANDPARENT = (
    QUEUE
    + """
await flows.add({ name: "G", queueName: "q2", opts: { jobId: "G", delay: 5000 }, children: [
  { name: "R", queueName: "q", opts: { jobId: "R" }, children: [{ name: "b", queueName: "q", opts: { jobId: "b" } }] },
] });
"""
)
FAILED_CHILDREN = (
    QUEUE
    + """
await flows.add({ name: "R", queueName: "q2", opts: { jobId: "R" }, children: [
  { name: "f", queueName: "q", opts: { jobId: "f", failParentOnFailure: true } },
  { name: "ok", queueName: "q", opts: { jobId: "ok" } }, { name: "x", queueName: "q", opts: { jobId: "x" } }] });
await work(p, 3, async (job) => { if (job.id !== "ok") throw new Error("boom"); return 5; });
"""
)
UNIQUE = (
    QUEUE
    + """
await q.add("u", {}, { jobId: "U", deduplication: { id: "k" } });
await q.add("v", {}, { jobId: "V", delay: 60000, deduplication: { id: "t", ttl: 90000 } });
"""
)
SCHEDULED = (
    QUEUE
    + """
await q.upsertJobScheduler("soon", { every: 2592000000 }, { name: "tick" });
await q.upsertJobScheduler("yearly", { pattern: "0 0 0 1 1 *", tz: "UTC" }, { name: "tick" });
await q.add("a", {}, { jobId: "A", delay: 60000 });
"""
)

OLD_REPEATS = (
    QUEUE
    + """
await q.add("five", {}, { repeat: { every: 2592000000 } });
const c = await q.client, at = Math.ceil(Date.now() / 2592000000) * 2592000000, key = "leg::::2592000000";
const id = `repeat:0123456789abcdef:${at}`;
const opts = { repeat: { every: 2592000000, count: 1 }, jobId: id, prevMillis: at };
await c.zadd(`${p}:q:repeat`, at, key); await c.zadd(`${p}:q:delayed`, at * 4096, id);
await c.hset(`${p}:q:${id}`, "name", "leg", "data", "{}", "opts", JSON.stringify(opts), "timestamp", 1, "delay", 0,
  "priority", 0, "rjk", key);
"""
)

RETRY = "for (const [id, from] of %s) await (await Job.fromId(q, id)).retry(from);"

CASES = {
    "pause": (ADD, "await q.pause();", lambda b: b.pause.pause("q")),
    "pause of an empty queue": (QUEUE, "await q.pause();", lambda b: b.pause.pause("q")),
    "resume": (ADD + "await q.pause();", "await q.resume();", lambda b: b.pause.resume("q")),
    "resume of a queue that is not paused": (ADD, "await q.resume();", lambda b: b.pause.resume("q")),
    "resume with delayed jobs only": (DELAYED + "await q.pause();", "await q.resume();", lambda b: b.pause.resume("q")),
    "retry": (
        FINISHED,
        RETRY % '[["good", "completed"], ["bad", "failed"]]',
        lambda b: b.retry("q", ["good", "bad"]),
    ),
    "retry in a paused queue": (
        FINISHED + "await q.pause();",
        RETRY % '[["bad", "failed"]]',
        lambda b: b.retry("q", ["bad"]),
    ),
    "retry at the global concurrency": (
        FINISHED + "await q.setGlobalConcurrency(0); await (await q.client).del(`${p}:q:marker`);",
        RETRY % '[["bad", "failed"]]',
        lambda b: b.retry("q", ["bad"]),
    ),
    "retry of children": (
        FAILED_CHILDREN,
        RETRY % '[["f", "failed"], ["ok", "completed"], ["x", "failed"]]',
        lambda b: b.retry("q", ["f", "ok", "x"]),
    ),
    "promote": (
        DELAYED,
        'for (const id of ["plain", "ranked"]) await (await Job.fromId(q, id)).promote();',
        lambda b: b.promote("q", ["plain", "ranked"]),
    ),
    "promote in a paused queue": (
        DELAYED + "await q.pause();",
        'for (const id of ["plain", "ranked"]) await (await Job.fromId(q, id)).promote();',
        lambda b: b.promote("q", ["plain", "ranked"]),
    ),
    "remove": (
        ADD + DELAYED.replace(QUEUE, "") + 'await (await Job.fromId(q, "A")).log("line");',
        'for (const id of ["A", "B", "plain", "nobody"]) await q.remove(id);',
        lambda b: b.remove("q", ["A", "B", "plain", "nobody"]),
    ),
    "remove finished": (
        FINISHED,
        'for (const id of ["good", "bad"]) await q.remove(id);',
        lambda b: b.remove("q", ["good", "bad"]),
    ),
    "remove a parent": (FAMILY, 'await q.remove("R");', lambda b: b.remove("q", ["R"])),
    "remove a grandparent": (GRANDPARENT, 'await q2.remove("G");', lambda b: b.remove("q2", ["G"])),
    "remove the children": (
        FAMILY,
        'await q.remove("a"); await q2.remove("b");',
        lambda b: _both(b.remove("q", ["a"]), b.remove("q2", ["b"])),
    ),
    "remove a parent of finished children": (FAILED_CHILDREN, 'await q2.remove("R");', lambda b: b.remove("q2", ["R"])),
    "remove the holder of a unique key": (
        UNIQUE,
        'for (const id of ["U", "V"]) await q.remove(id);',
        lambda b: b.remove("q", ["U", "V"]),
    ),
    "remove what a schedule needs": (
        SCHEDULED,
        'await (await q.getDelayed())[0].remove().catch(() => {}); await q.remove("A");',
        lambda b: b.remove("q", ["A"]),
    ),
    "drain": (ADD + DELAYED.replace(QUEUE, ""), "await q.drain();", lambda b: b.drain("q", False)),
    "drain with delayed": (ADD + DELAYED.replace(QUEUE, ""), "await q.drain(true);", lambda b: b.drain("q", True)),
    "drain children": (
        FAMILY,
        "await q2.drain(); await q.drain();",
        lambda b: _both(b.drain("q2", False), b.drain("q", False)),
    ),
    "drain children of another queue's parent": (
        FAMILY + 'await q.remove("a");',
        "await q2.drain();",
        lambda b: b.drain("q2", False),
    ),
    "drain children, then their parent's parent": (GRANDPARENT, "await q.drain();", lambda b: b.drain("q", False)),
    "drain unique jobs": (UNIQUE, "await q.drain(true);", lambda b: b.drain("q", True)),
    "drain beside schedules": (
        SCHEDULED.replace('await q.upsertJobScheduler("soon", { every: 2592000000 }, { name: "tick" });', ""),
        "await q.drain(true);",
        lambda b: b.drain("q", True),
    ),
    "drain beside repeat jobs of BullMQ 4 and 5": (OLD_REPEATS, "await q.drain(true);", lambda b: b.drain("q", True)),
    "clean beside repeat jobs of BullMQ 4 and 5": (
        OLD_REPEATS,
        'await q.clean(0, 0, "delayed");',
        lambda b: b.clean("q", State.DELAYED, 0, 0),
    ),
    "clean completed": (FINISHED, 'await q.clean(0, 0, "completed");', lambda b: b.clean("q", State.COMPLETED, 0, 0)),
    "clean failed, too young": (
        FINISHED,
        'await q.clean(600000, 0, "failed");',
        lambda b: b.clean("q", State.FAILED, 600, 0),
    ),
    "clean delayed": (
        SCHEDULED + DELAYED.replace(QUEUE, ""),
        'await q.clean(0, 0, "delayed");',
        lambda b: b.clean("q", State.DELAYED, 0, 0),
    ),
    "clean waiting": (
        FAMILY,
        'await q2.clean(0, 0, "paused"); await q2.clean(0, 0, "wait"); await q2.clean(0, 0, "prioritized");',
        lambda b: b.clean("q2", State.WAITING, 0, 0),
    ),
    "clean with a limit": (
        QUEUE + 'for (const n of [1, 2, 3]) await q.add("n", {}, { delay: 60000 + n });',
        'await q.clean(0, 2, "delayed");',
        lambda b: b.clean("q", State.DELAYED, 0, 2),
    ),
    "progress": (
        ADD,
        'const job = await Job.fromId(q, "A"); await job.updateProgress({ half: true }); await job.updateProgress(75);',
        lambda b: _both(
            b.progress.update_progress("q", "A", b'{"half":true}'), b.progress.update_progress("q", "A", b"75")
        ),
    ),
    "log": (
        QUEUE + 'await q.add("a", {}, { jobId: "A", keepLogs: 2 });',
        'const job = await Job.fromId(q, "A"); for (const line of ["1", "2", "3 é"]) await job.log(line);',
        lambda b: _both(b.logs.log("q", "A", "1", 0), b.logs.log("q", "A", "2", 0), b.logs.log("q", "A", "3 é", 0)),
    ),
    "obliterate": (
        FINISHED + ADD.replace(QUEUE, "") + DELAYED.replace(QUEUE, "") + UNIQUE.replace(QUEUE, ""),
        "await q.obliterate(); await (await q.client).del(`${p}:q:marker`);",
        lambda b: b.obliterate("q", False),
    ),
    "obliterate a queue of children": (
        FAMILY,
        "await q2.obliterate(); await (await q2.client).del(`${p}:q2:marker`);",
        lambda b: b.obliterate("q2", False),
    ),
}


async def _both(*steps):
    for step in steps:
        await step


@pytest.mark.parametrize("case", CASES)
async def test_leaves_what_node_leaves(case: str, same_as_node) -> None:
    arrange, act, ours = CASES[case]
    await same_as_node(arrange, f"{QUEUE} {act}", ours)
