"""Makes the store change its primary: MongoDB elects again, PostgreSQL restarts under pooled connections, a sentinel
promotes a replica of Valkey whose master was killed."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from pymongo.errors import AutoReconnect

from awaiting import eventually
from faults.inject.fault import Fault
from faults.scene import Scene
from faults.stores import WITH_REPLICAS
from faults.stores.monque import Monque
from faults.stores.watched import WatchedServer


class FailOver(Fault):
    stores = WITH_REPLICAS
    outage = True
    times = 10
    times_short = 1

    async def inject(self, scene: Scene) -> None:
        if isinstance(scene.store, Monque):
            await asyncio.to_thread(_step_down, scene.store)
            return
        if isinstance(scene.store, WatchedServer):
            await asyncio.to_thread(scene.store.server.fail_over)
            return
        server = scene.store.server.pid
        os.kill(server, signal.SIGINT)  # the "fast" shutdown: transactions are rolled back, connections are closed
        await eventually(lambda: scene.store.server.pid not in (0, server), within=90)


def _step_down(store: Monque) -> None:
    """Makes the only member give up being primary for two seconds. It breaks every connection as it does."""
    with store.client() as client, suppress(AutoReconnect):
        client.admin.command({"replSetStepDown": 2, "force": True})
