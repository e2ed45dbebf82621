"""The real Node peers, driven by short scripts."""

from __future__ import annotations

from typing import Any

from interop.peer import Peer

_peers: dict[tuple[str, str], Peer] = {}
"""A Node process per package and server. Starting one takes longer than most scripts."""


async def node(url: str, prefixes: list[str], body: str, peer: str = "bullmq") -> list[Any]:
    """Run the body in Node beside the named package; what it `say`s, in order. Helpers: interop/node/scripts.mjs."""
    process = _peers.get((peer, url))
    if process is None or not process.alive:
        process = _peers[peer, url] = Peer(peer, url)
    return await process.ask("script", prefixes=prefixes, body=body)


def close_peers() -> None:
    """End the Node processes."""
    while _peers:
        _peers.popitem()[1].close()
