"""Gives every statement a time limit that is too short while rows are locked, so that many are cancelled."""

from __future__ import annotations

from faults.inject.fault import Fault
from faults.inject.lock_table import hold_table
from faults.scene import Scene
from faults.stores.pgboss import PgBoss


class TimeOutStatements(Fault):
    protocols = ("pgboss",)
    outage = True
    times = 8
    times_short = 1

    async def prepare(self, scene: Scene) -> None:
        _limit(scene, "150ms")

    async def inject(self, scene: Scene) -> None:
        assert isinstance(scene.store, PgBoss)
        await hold_table(scene.store, 1.0)

    async def undo(self, scene: Scene) -> None:
        _limit(scene, "0")


def _limit(scene: Scene, value: str) -> None:
    """Sets the limit for connections that exist and for new ones."""
    assert isinstance(scene.store, PgBoss)
    with scene.store.client() as client:
        client.execute("SET statement_timeout = 0")
        client.execute(f"ALTER SYSTEM SET statement_timeout = '{value}'")
        client.execute("SELECT pg_reload_conf()")
