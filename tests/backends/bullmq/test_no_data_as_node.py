"""A job that is added without data has the bytes that Node stores for it, and one whose data is null has null."""

from __future__ import annotations

from redis.asyncio import Redis

from jobwire import Flow, FlowJob, NewJob, Queue
from jobwire.embedded import Server

from .peer import node

NODE = """
const p = prefixes[0], q = queueOf(p);
await q.add("a", undefined, { jobId: "a-missing" });
await q.add("a", null, { jobId: "a-null" });
await q.upsertJobScheduler("s-missing", { every: 3600000 }, { name: "a" });
await q.upsertJobScheduler("s-null", { every: 3600000 }, { name: "a", data: null });
const f = new FlowProducer({ connection, prefix: p });
await f.add({ name: "a", queueName: "q", opts: { jobId: "f-missing" },
  children: [{ name: "a", queueName: "q", data: null, opts: { jobId: "f-null" } }] });
await f.close();
"""


async def stored(redis: Redis, prefix: str) -> dict[str, bytes | None]:
    """The `data` of every job and every schedule; a scheduled job under its schedule's name."""
    found: dict[str, bytes | None] = {}
    async for key in redis.scan_iter(match=f"{prefix}:q:*-*", count=100_000):
        if await redis.type(key) == b"hash":
            word = key.decode().removeprefix(f"{prefix}:q:")
            parts = word.split(":")
            found["job of " + parts[1] if len(parts) == 3 else word] = await redis.hget(key, "data")
    return found


async def test_missing_data_is_stored_as_node_stores_it(jobwire_valkey: Server, redis: Redis, prefix: str) -> None:
    url, theirs = f"bullmq+{jobwire_valkey.url}?prefix={prefix}", f"{prefix}n"
    await node(jobwire_valkey.url, [theirs], NODE)
    async with Queue("q", url) as queue, Flow(queue.connection) as flow:
        added = await queue.add(id="a-missing")
        await queue.add(None, id="a-null")
        await queue.schedule("s-missing", every=3600, name="a")
        await queue.schedule("s-null", every=3600, name="a", data=None)
        await flow.add(FlowJob("q", id="f-missing", children=[FlowJob("q", None, id="f-null")]))
        assert added.data == {}
        assert (await queue.add_many([NewJob(None)]))[0].data is None
    ours = await stored(redis, prefix)
    assert ours["a-missing"] == ours["f-missing"] == ours["job of s-missing"] == b"{}"
    assert ours["a-null"] == ours["f-null"] == b"null"
    assert ours == await stored(redis, theirs)
