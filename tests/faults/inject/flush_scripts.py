"""Makes the server forget its scripts."""

from __future__ import annotations

from faults.inject.fault import Fault
from faults.scene import Scene
from faults.stores.redis_store import RedisServer


class FlushScripts(Fault):
    protocols = ("bullmq", "bridgemq")
    times = 50
    times_short = 4

    async def inject(self, scene: Scene) -> None:
        assert isinstance(scene.store, RedisServer)
        with scene.store.client() as client:
            client.script_flush()
