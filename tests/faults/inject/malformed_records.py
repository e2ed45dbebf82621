"""Puts malformed records of other programs among the jobs, by the thousand: they fail or go, and the others run."""

from __future__ import annotations

from collections.abc import Mapping

from faults.inject.fault import Fault
from faults.scene import Scene
from faults.stores.malformed import insert_malformed


class MalformedRecords(Fault):
    times = 5
    peers = False  # what Node does with them is Node's

    def __init__(self) -> None:
        self._jobs = 0

    async def inject(self, scene: Scene) -> None:
        self._jobs += insert_malformed(scene.store, 20 if scene.short else 1000)

    @property
    def foreign(self) -> Mapping[str, int]:
        return {"failed": self._jobs}
