"""Moves the slot of all keys to another node of the cluster, key by key and as a whole."""

from __future__ import annotations

import asyncio

from faults.inject.fault import Fault
from faults.scene import Scene
from faults.stores import ON_CLUSTERS
from faults.stores.clustered import ClusteredServer


class MoveSlots(Fault):
    protocols = tuple(ON_CLUSTERS)
    stores = ON_CLUSTERS
    outage = True
    times_short = 2

    def __init__(self) -> None:
        self._rounds = 0

    async def inject(self, scene: Scene) -> None:
        store = scene.store
        assert isinstance(store, ClusteredServer)
        self._rounds += 1
        move = store.server.move_by_keys if self._rounds % 2 else store.server.move_at_once
        await asyncio.to_thread(move, store.slot, scene.chance.choice(store.servers[1:]))
