"""The doctor on queues that Node uses."""

from __future__ import annotations

from awaiting import eventually
from jobwire import connect
from jobwire.doctor import examine

from ..peer import NodeQueue

OF_THE_SERVER = {"no-persistence"}
"""The server of tests writes nothing to disk."""


async def test_a_queue_of_node_has_no_findings_while_its_worker_runs(url: str, node: NodeQueue) -> None:
    await node.add({"n": 1}, delay=600_000)
    before = await examine(connect(url))
    assert [one.code for one in before.findings if one.code not in OF_THE_SERVER] == ["no-worker"]

    async def troubles() -> list[str] | None:
        seen = await examine(connect(url))
        found = [one.code for one in seen.findings if one.code not in OF_THE_SERVER]
        return None if "no-worker" in found else [*found, "looked"]  # its connection gets its name a little later

    async with node.work("echo"):
        assert await eventually(troubles) == ["looked"]
