"""Texts that break careless software: stored byte for byte as Node stores them, and read back as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from redis.asyncio import Redis

from jobwire import Queue, codec
from jobwire.backends.bullmq.keys import Keys
from jobwire.boundary import Backend, Completed, Failed
from jobwire.embedded import Server
from jobwire.options import NewJob, Unique

from .jobs import claim, consumer
from .peer import node

TEXTS = {
    "latin": "naïve café, Straße, Łódź",
    "many scripts": "Ελληνικά русский עברית العربية हिन्दी ไทย 日本語 한국어",
    "right to left, with marks": "\u202eabc\u202c \u200f\u0639\u200d\u0631",
    "composed and not": "\u00e9 e\u0301 \u1e9b\u0323",
    "emoji": "😀 👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇫🇷",
    "beyond the basic plane": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠜎 \U0010ffff",
    "null": "before\u0000after\u0000",
    "controls": "".join(map(chr, range(32))) + "\u007f\u0080\u009f",
    "line separators": "a\u2028b\u2029c\u0085d\r\ne\ve\f",
    "noncharacters": "\ufffe\uffff\ufdd0",
    "byte order mark": "\ufefftext",
    "markup": "<script>alert('x')</script>\"><img src=x onerror=alert(1)>&amp;</textarea>",
    "a query": "'; DROP TABLE jobs; -- \\'",
    "a template": "{{7*7}} ${process.exit()} %s %n {0} <%= 1 %>",
    "Lua": "redis.call('FLUSHALL') ]] --[[ \\0",
    "protocol": "*1\r\n$7\r\nFLUSHDB\r\n",
    "backslashes": "\\ \\\\ \\u0041 \\x00",
    "spaces": " \t leading and trailing \u00a0\u3000 ",
    "long": "ü" * 5000,
}


def data_of(text: str) -> dict[str, Any]:
    return {"text": text, text: [text, {"deep": text}]}


# Every place of a job that holds a text, filled with the same one.
NODE_FILLS = """
const texts = TEXTS, p = prefixes[0], token = "t:0";
for (const [number, text] of texts.entries()) {
  const q = queueOf(p, `q${number}`), data = { text, [text]: [text, { deep: text }] };
  const w = new Worker(`q${number}`, null, { connection, prefix: p, autorun: false }); w.on("error", () => {});
  await q.add(text, data, { deduplication: { id: text } }); await q.add(text, text);
  const first = await w.getNextJob(token, { block: false });
  await first.updateProgress({ text }); await first.log(text); await first.moveToCompleted(data, token, false);
  const second = await w.getNextJob(token, { block: false });
  await second.moveToFailed(new Error(text), token, false);
}
"""


async def we_fill(backend: Backend, queue: Queue, text: str) -> None:
    added = await queue.add(data_of(text), name=text, unique=Unique(text))
    await queue.add(text, name=text)
    worker = consumer(backend, queue.name)
    [first] = await claim(worker)
    assert (first.job.name, first.job.data) == (text, data_of(text))
    await backend.progress.update_progress(queue.name, added.id, codec.dumps({"text": text}))
    await backend.logs.log(queue.name, added.id, text, 0)
    await worker.settle([Completed(first, codec.dumps(data_of(text)))], 0)
    [second] = await claim(worker)
    await worker.settle([Failed(second, text, "stack")], 0)


async def texts_of(redis: Redis, keys: Keys) -> dict[str, Any]:
    fields = ("name", "data", "progress", "returnvalue", "failedReason", "deid")
    return {
        "jobs": [await redis.hmget(keys.job(job_id), fields) for job_id in ("1", "2")],
        "logs": await redis.lrange(keys.logs("1"), 0, -1),
        "events": [told for _, told in await redis.xrange(keys.events)],
    }


async def test_texts_are_stored_byte_for_byte_as_node_stores_them(
    backend: Backend, jobwire_valkey: Server, redis: Redis, prefix: str
) -> None:
    theirs = f"{prefix}-node"
    await node(jobwire_valkey.url, [theirs], NODE_FILLS.replace("TEXTS", json.dumps(list(TEXTS.values()))))
    for number, (label, text) in enumerate(TEXTS.items()):
        async with Queue(f"q{number}", f"bullmq+{jobwire_valkey.url}?prefix={prefix}") as queue:
            await we_fill(backend, queue, text)
        ours, node_has = [await texts_of(redis, Keys(one, f"q{number}")) for one in (prefix, theirs)]
        assert ours == node_has, label


async def test_all_texts_are_read_as_node_wrote_them(
    jobwire_valkey: Server, prefix: str, backend: Backend, redis: Redis
) -> None:
    texts = list(TEXTS.values())
    script = f"""
    const texts = {json.dumps(texts)}, q = queueOf(prefixes[0]);
    for (const text of texts) {{
      const job = await q.add(text, {{ text, [text]: [text, {{ deep: text }}] }});
      await job.log(text); await job.updateProgress(text);
    }}
    """
    await node(jobwire_valkey.url, [prefix], script)

    found = await backend.get("q", [str(number + 1) for number in range(len(texts))])

    for text, job in zip(texts, found, strict=True):
        assert job is not None
        assert (job.name, job.data, job.progress) == (text, data_of(text), text)
        assert list(await backend.logs.logs("q", job.id)) == [text]


async def test_all_texts_are_read_by_node_as_we_wrote_them(
    jobwire_valkey: Server, prefix: str, backend: Backend
) -> None:
    texts = list(TEXTS.values())
    async with Queue("q", f"bullmq+{jobwire_valkey.url}?prefix={prefix}") as queue:
        await queue.add_many([NewJob(data_of(text), text) for text in texts])
    script = """
    const q = queueOf(prefixes[0]);
    for (const job of (await q.getJobs(["waiting"], 0, -1, true))) say([job.name, job.data]);
    """
    assert await node(jobwire_valkey.url, [prefix], script) == [[text, data_of(text)] for text in texts]


@pytest.mark.parametrize("lone", ["\ud800", "a\udfffb", "\udc00\ud800"])
async def test_a_lone_surrogate_in_data_travels_as_an_escape(
    lone: str, jobwire_valkey: Server, prefix: str, redis: Redis, keys: Keys
) -> None:
    """It is no Unicode, and can't be UTF-8; JSON has a way to write it, which Node takes."""
    async with Queue("q", f"bullmq+{jobwire_valkey.url}?prefix={prefix}") as queue:
        added = await queue.add({"text": lone})
        job = await queue.get(added.id)
    assert job is not None
    assert job.data == {"text": lone}
    script = f"""
    const q = queueOf(prefixes[0]), job = await q.getJob("1"); say(job.data.text === {json.dumps(lone)});
    await q.add("n", {{ text: {json.dumps(lone)} }});
    """
    assert await node(jobwire_valkey.url, [prefix], script) == [True]
    assert await redis.hget(keys.job("1"), "data") == await redis.hget(keys.job("2"), "data")
