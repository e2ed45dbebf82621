"""Has the server close all its clients' connections, as an administrator can."""

from __future__ import annotations

import redis

from faults.inject.fault import Fault
from faults.scene import Scene
from faults.stores.pgboss import PgBoss
from faults.stores.redis_store import RedisServer


class KillClients(Fault):
    protocols = ("bullmq", "bridgemq", "pgboss")
    outage = True
    times = 30
    times_short = 3

    async def inject(self, scene: Scene) -> None:
        if isinstance(scene.store, RedisServer):
            with scene.store.client() as client:
                kill_redis_clients(client)
        else:
            assert isinstance(scene.store, PgBoss)
            with scene.store.client() as client:
                client.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname IS NOT NULL AND pid <> pg_backend_pid()"
                )


def kill_redis_clients(client: redis.Redis) -> None:
    """Closes all connections but this client's own."""
    for kind in ("normal", "pubsub"):
        client.client_kill_filter(_type=kind, skipme=True)
