"""Takes all connections that the server grants, and has those of the clients closed, so that they find none."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress

import psycopg

from faults.inject.fault import Fault
from faults.inject.kill_clients import KillClients, kill_redis_clients
from faults.scene import Scene
from faults.stores.redis_store import RedisServer


class ExhaustConnections(Fault):
    protocols = ("bullmq", "bridgemq", "pgboss")
    outage = True
    times = 5
    times_short = 1

    async def inject(self, scene: Scene) -> None:
        seconds = 1.5 if scene.short else 5.0
        with ExitStack() as stack:
            if isinstance(scene.store, RedisServer):
                client = stack.enter_context(scene.store.client())
                usual = client.config_get("maxclients")["maxclients"]
                client.config_set("maxclients", 2)
                stack.callback(client.config_set, "maxclients", usual)
                kill_redis_clients(client)
                await asyncio.sleep(seconds)
                return
            await KillClients().inject(scene)
            with suppress(psycopg.OperationalError):
                for _ in range(300):
                    held = await asyncio.to_thread(psycopg.connect, scene.store.server.url)
                    stack.callback(held.close)
            await asyncio.sleep(seconds)
