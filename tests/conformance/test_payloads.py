"""Any JSON value survives the trip; what is not JSON is refused before it is written."""

from __future__ import annotations

import datetime

import pytest

from jobwire import codec
from jobwire.boundary import Feature
from jobwire.errors import InvalidOption, PayloadTooLarge
from jobwire.queue import Queue

VALUES = [
    None,
    True,
    0,
    -1,
    2**53 - 1,
    -(2**53 - 1),
    0.1,
    1e-7,
    1.7976931348623157e308,
    "",
    "plain",
    "Grüße, Ελλάδα, 日本語, עברית",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🚀",
    "null \x00 byte",
    "control \x01\x1f\x7f and \u2028 \u2029",
    "quotes \" ' ` \\ / and {braces} [brackets] %s $1",
    "line\r\nbreak\ttab",
    [],
    {},
    [[], [[]], {}],
    {"": {"": ""}},
    {"é": 1, "a b": 2, "a:b": 3, "__proto__": 4, "\x00": 5},
    {"order": {"z": 1, "a": 2, "m": [3, None, False]}},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: ascii(value)[:40])
async def test_a_value_is_the_same_for_reader_and_handler_and_as_a_result(queue, work, finished, value):
    seen = []

    async def handler(job):
        seen.append(job.data)
        return job.data

    can, encoded = queue.capabilities, codec.dumps(value)
    if (not can.null_character and b"\\u0000" in encoded) or (not can.null_key and b'\\u0000":' in encoded):
        with pytest.raises(InvalidOption, match="null character"):
            await queue.add(value)
        return
    added = await queue.add(value)
    assert (await queue.get(added.id)).data == value
    async with work(handler):
        job = await finished(queue, added.id)
    assert seen == [value]
    assert type(seen[0]) is type(value)
    assert job.data == value
    if queue.capabilities.has(Feature.RESULTS):
        assert job.result == value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (float("nan"), "data"),
        ({"a": [float("inf")]}, "data.a[0]"),
        ({"big": 2**53}, "data.big"),
        ([10**30], "data[0]"),
        ({1: "x"}, "data"),
        ({"when": datetime.datetime.now(datetime.UTC)}, "data.when"),
        (b"bytes", "data"),
        ({"s": {1, 2}}, "data.s"),
    ],
    ids=["nan", "infinity", "2^53", "10^30", "int key", "datetime", "bytes", "set"],
)
async def test_what_is_not_json_is_refused_before_it_is_written(queue, value, path):
    with pytest.raises(InvalidOption) as refusal:
        await queue.add(value)
    assert refusal.value.field == path
    assert sum((await queue.counts()).values()) == 0


async def test_a_payload_above_the_limit_is_refused_with_both_sizes(queue):
    with pytest.raises(PayloadTooLarge, match=r"^Job payload size 11\.0 MB exceeds limit of 10\.0 MB$"):
        await queue.add("x" * (11 * 1024 * 1024))
    assert sum((await queue.counts()).values()) == 0


async def test_a_payload_just_below_the_limit_survives(queue, consume):
    data = "x" * (10 * 1024 * 1024 - 100)  # some protocols store options beside the data, which count too
    await queue.add(data)
    [claim] = (await consume().settle([], claim=1)).claims
    assert len(claim.job.data) == len(data)
    assert claim.job.data == data


async def test_the_limit_counts_bytes_and_can_be_set_per_queue(connection):
    async with Queue("letters", connection, size_limit=40) as small:
        await small.add("e" * 20)
        with pytest.raises(PayloadTooLarge):
            await small.add("é" * 20)
        assert sum((await small.counts()).values()) == 1
