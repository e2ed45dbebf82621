"""Sets the server's memory limit to less than it uses, without eviction: adds are refused, running jobs end."""

from __future__ import annotations

import asyncio

from faults.inject.fault import Fault
from faults.scene import Scene
from faults.stores.redis_store import RedisServer


class FillMemory(Fault):
    protocols = ("bullmq", "bridgemq")
    outage = True
    times = 5
    times_short = 1

    async def inject(self, scene: Scene) -> None:
        assert isinstance(scene.store, RedisServer)
        with scene.store.client() as client:
            client.config_set("maxmemory", 1)
            try:
                await asyncio.sleep(1.0 if scene.short else 3.0)
            finally:
                client.config_set("maxmemory", 0)
