"""Takes all connections that the server grants, those of the clients too, which then find none."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack, suppress

import psycopg

from faults.inject.fault import Fault
from faults.inject.kill_clients import kill_redis_clients
from faults.scene import Scene
from faults.stores.pgboss import PgBoss
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
            assert isinstance(scene.store, PgBoss)
            await asyncio.to_thread(_take_all, scene.store, stack)
            await asyncio.sleep(seconds)


def _take_all(store: PgBoss, stack: ExitStack) -> None:
    """Takes what is free, then has the clients' connections closed and takes those, until no client has one."""
    first = stack.enter_context(store.client())
    held = [first.info.backend_pid]
    until = time.monotonic() + 60
    while True:
        with suppress(psycopg.OperationalError):  # there is none left
            while True:
                another = stack.enter_context(store.client())
                held.append(another.info.backend_pid)
        closed = first.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> ALL(%s)",
            [held],
        ).fetchall()
        if not closed:
            return
        assert time.monotonic() < until, f"clients still get {len(closed)} connections"
