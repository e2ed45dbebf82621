"""The doctor on a schema that Node made: what Node's own version has is not taken for missing or extra."""

from __future__ import annotations

from jobwire import connect
from jobwire.doctor import examine

from .node import NodeBoss

OF_THE_SERVER = {"durability", "connections", "unused-slot", "replica-lag", "open-transaction"}
"""Findings about the server, which other tests share and which does not sync."""


async def test_a_schema_of_node_has_no_findings(url: str, node: NodeBoss) -> None:
    for name, settings in {
        "plain": {}, "own": {"partition": True}, "short": {"partition": True, "policy": "short"},
        "stately": {"partition": True, "policy": "stately"}, "strict": {"partition": True, "policy": "key_strict_fifo"},
    }.items():  # fmt: skip
        await node.call("createQueue", name, settings)
    await node.call("send", "plain", {"n": 1})
    await node.call("schedule", "plain", "0 3 * * *")
    seen = await examine(connect(url))
    assert [one for one in seen.findings if one.code not in OF_THE_SERVER] == []
    assert seen.queues == ["own", "plain", "short", "stately", "strict"]
