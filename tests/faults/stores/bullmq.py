"""BullMQ on Valkey, with Node's worker beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from faults.case import StoredJob
from faults.stores.redis_store import RedisServer

_QUEUES_OWN = {"id", "meta", "events", "completed", "failed", "stalled-check", "marker", "pc"}


class BullMQ(RedisServer):
    """A prefix of its own."""

    protocol = "bullmq"
    peer = Path(__file__).parents[1] / "peers" / "bullmq.mjs"
    peer_package = "bullmq"

    def at(self, server: str) -> str:
        return f"bullmq+{server}?prefix={self.place}"

    def residue(self, jobs: Sequence[StoredJob]) -> list[str]:
        explained = _QUEUES_OWN | {job.id for job in jobs}
        return [key for key in self.keys() if key.removeprefix("work:") not in explained]
