"""Any JSON value survives the way through both languages and back."""

from __future__ import annotations

from typing import Any

import pytest

from jobwire import ActiveJob, Queue, Worker

from ..peer import NodeQueue

PAYLOADS: dict[str, Any] = {
    "nothing": None,
    "false": False,
    "zero": 0,
    "empty text": "",
    "empty list": [],
    "empty object": {},
    "nested": {"a": [{"b": [[], {}, None, True]}], "": "empty key"},
    "largest safe integers": [2**53 - 1, -(2**53 - 1)],
    "floats": [0.1, 1e-7, 1.7976931348623157e308, 5e-324, -0.5],
    "every script": "Zürich, Ελλάδα, Привет, 日本語, العربية, 👩‍👩‍👧 \u2028\u2029",
    "null bytes": {"a\x00b": "\x00\x01\x1f\x7f"},
    "quotes and slashes": "\"'\\/\n\r\t</script>",
    "keys that a prototype has": {"constructor": 1, "toString": 2, "hasOwnProperty": 3},
    "ten thousand entries": {f"key {number}": number for number in range(10_000)},
    "five megabytes": "é" * 2_500_000,
}


@pytest.mark.parametrize("data", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_node_gets_back_from_jobwire_what_it_sent(node: NodeQueue, work: Any, data: Any) -> None:
    seen = []

    async def reflect(job: ActiveJob) -> Any:
        seen.append(job.data)
        return job.data

    job_id = await node.add(data)
    async with work(reflect):
        returned = await node.ask("waitUntilFinished", job=job_id, ms=20_000)
    job = await node.get(job_id)
    assert seen == [data]
    assert (job.data, job.returnvalue, returned) == (data, data, data)


@pytest.mark.parametrize("data", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_jobwire_gets_back_from_node_what_it_sent(node: NodeQueue, queue: Queue, data: Any) -> None:
    added = await queue.add(data)
    async with node.work("reflect"):
        returned = await added.wait(timeout=20)
    job = await queue.get(added.id)
    assert (job.data, job.result, returned) == (data, data, data)


async def test_a_name_and_an_id_in_any_script_are_the_same_in_both_languages(
    node: NodeQueue, queue: Queue, work: type[Worker]
) -> None:
    added = await queue.add(1, name="приветствие ✓", id="письмо-1")
    seen = await node.get("письмо-1")
    assert (added.id, seen.id, seen.name) == ("письмо-1", "письмо-1", "приветствие ✓")

    await node.add(2, name="問候", jobId="手紙-1")
    job = await queue.get("手紙-1")
    assert (job.id, job.name, job.data) == ("手紙-1", "問候", 2)
