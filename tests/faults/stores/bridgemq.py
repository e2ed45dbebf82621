"""BridgeMQ on Valkey."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from faults.case import StoredJob
from faults.stores.redis_store import RedisServer

_OWN = {
    *("jobs:deadletter", "workers:active", "scheduler:lock", "ratelimit:concurrent:work", "ratelimit:minute:work"),
    *("x:version", "x:types", "x:handlers:work", "x:routes:0::work", "x:seq"),
}
_OF_A_JOB = ("jobs:data:", "jobs:status:", "jobs:result:", "jobs:progress:", "x:logs:")
_NO_EXPIRY = -1
_INDEXES = ("x:completed:work", "x:dead:work")
"""Finished jobs, in the order of their ends."""


class BridgeMQ(RedisServer):
    """A namespace of its own."""

    protocol = "bridgemq"

    def at(self, server: str) -> str:
        return f"bridgemq+{server}?namespace={self.place}"

    def residue(self, jobs: Sequence[StoredJob]) -> list[str]:
        ids = {job.id for job in jobs}
        with self.client() as client:
            # A leader removes killed workers from the registry a while after their last heartbeat.
            workers = {f"workers:{server}" for server in client.smembers(f"{self.place}:workers:active")}
            explained = _OWN | workers | set(_INDEXES) | {prefix + job for prefix in _OF_A_JOB for job in ids}
            found = [key for key in self.keys() if key not in explained]
            found = [key for key in found if key.startswith("jobs:lock:") or self._stays(client, key)]
            for index in _INDEXES:
                found += [
                    f"{one} in {index}" for one in client.zrange(f"{self.place}:{index}", 0, -1) if one not in ids
                ]
            running = client.get(f"{self.place}:ratelimit:concurrent:work")
        return found + ([f"ratelimit:concurrent:work is {running}"] if running not in (None, "0") else [])

    def unfinished(self) -> list[str]:
        """Jobs that could not be run: the leader logs them once a second."""
        with self.client() as client:
            return ["x:aside"] if client.exists(f"{self.place}:x:aside") else []

    def _stays(self, client: redis.Redis, key: str) -> bool:
        return client.ttl(f"{self.place}:{key}") == _NO_EXPIRY
