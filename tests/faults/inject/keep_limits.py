"""Kills workers and resets connections while the queue has limits: they hold over all workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from faults.case import Promises
from faults.inject.fault import Fault
from faults.inject.kill_worker import KillWorker
from faults.inject.reset_connections import ResetConnections
from faults.scene import Scene
from faults.stores import Store
from jobwire import Queue, Rate

_RATE, _PER, _AT_ONCE = 10, 0.25, 2
_NATIVE: Mapping[str, tuple[str, dict[str, int]]] = {
    "bridgemq": ("BridgeMQWorker", {"max_concurrent": _AT_ONCE}),
    "pgboss": ("PgBossWorker", {"group_concurrency": _AT_ONCE}),
}


class KeepLimits(Fault):
    protocols = ("bullmq", "bridgemq", "pgboss")
    outage = True
    through_proxy = True
    times = 40
    times_short = 2
    faults: ClassVar[tuple[type[Fault], ...]] = (KillWorker, ResetConnections)

    def worker_settings(self, store: Store) -> Mapping[str, Any]:
        if store.protocol == "bullmq":
            return {}
        return {"rate": (_RATE, _PER), "native": _NATIVE[store.protocol]}

    def job_extra(self, store: Store) -> Mapping[str, Any]:
        return {"group": {"id": "all"}} if store.protocol == "pgboss" else {}

    async def prepare(self, scene: Scene) -> None:
        if scene.store.protocol == "bullmq":  # stored with the queue, so that they hold for Node's worker too
            async with Queue("work", scene.store.url) as queue:
                await queue.admin.limit_rate(Rate(_RATE, per=_PER))
                await queue.admin.limit_concurrency(_AT_ONCE)

    async def inject(self, scene: Scene) -> None:
        await scene.chance.choice(self.faults)().inject(scene)

    @property
    def promises(self) -> Promises:
        return Promises(rate=(_RATE, _PER), at_once=_AT_ONCE)
