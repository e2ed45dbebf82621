"""Locks the table of jobs for some seconds, and keeps an old transaction open beside the load."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress

from psycopg.errors import DeadlockDetected

from faults.inject.fault import Fault
from faults.scene import Scene
from faults.stores.pgboss import PgBoss


class LockTable(Fault):
    protocols = ("pgboss",)
    times = 6
    times_short = 1

    def __init__(self) -> None:
        self._old = ExitStack()

    async def prepare(self, scene: Scene) -> None:
        assert isinstance(scene.store, PgBoss)
        old = self._old.enter_context(scene.store.client())
        self._old.enter_context(old.transaction())
        old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        old.execute(f"SELECT count(*) FROM {scene.store.place}.version")

    async def inject(self, scene: Scene) -> None:
        assert isinstance(scene.store, PgBoss)
        await hold_table(scene.store, 1.5 if scene.short else scene.lease + 3.0)

    async def undo(self, scene: Scene) -> None:
        self._old.close()


async def hold_table(store: PgBoss, seconds: float) -> None:
    """Locks the table of jobs for so long. Its partitions are locked one after another, as statements of the load lock
    them too: if the server ends a deadlock of the two at our cost, the lock is asked for again."""
    while True:
        with suppress(DeadlockDetected):
            with store.client() as client, client.transaction():
                client.execute("SET LOCAL statement_timeout = 0")
                await asyncio.to_thread(client.execute, f"LOCK TABLE {store.place}.job IN ACCESS EXCLUSIVE MODE")
                await asyncio.sleep(seconds)
            return
