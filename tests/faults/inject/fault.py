"""A fault: what is done to a scene, again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from faults.case import Promises
from faults.scene import Scene
from faults.stores import STORES, Store


class Fault(ABC):
    """One kind of fault. Its name is that of its file."""

    protocols: ClassVar[tuple[str, ...]] = tuple(STORES)
    """Those that have the notion."""
    stores: ClassVar[Mapping[str, type[Store]]] = STORES
    """The stores of these protocols: one server each, unless the fault needs another kind of them."""
    times: ClassVar[int] = 10
    """How often it happens in a run of the long version."""
    times_short: ClassVar[int] = 2
    through_proxy: ClassVar[bool] = False
    outage: ClassVar[bool] = False
    """True if the store does not answer for a while."""
    settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of the Python workers."""
    transactions: ClassVar[bool] = True
    """True if handlers write into the store in the transaction that completes their job, where that can be done."""
    survivor: ClassVar[bool] = True
    """True if the first worker lives through everything. False if there is only one, which the fault hits."""
    peers: ClassVar[bool] = True
    """True if a Node worker takes part, where there is one."""

    def worker_settings(self, store: Store) -> Mapping[str, Any]:
        """Returns the settings of the Python workers."""
        return self.settings

    def job_extra(self, store: Store) -> Mapping[str, Any]:
        """Returns native options of each job."""
        return {}

    async def prepare(self, scene: Scene) -> None:  # noqa: B027 - most need nothing
        """Sets the scene, before the load begins."""

    @abstractmethod
    async def inject(self, scene: Scene) -> None:
        """Does harm once. Returns when it is over, or has begun if it goes on beside the load."""

    async def undo(self, scene: Scene) -> None:  # noqa: B027 - most have nothing to undo
        """Ends what still goes on, after the last time."""

    @property
    def foreign(self) -> Mapping[str, int]:
        """How many records that it put into the store must be in each state at rest."""
        return {}

    @property
    def promises(self) -> Promises:
        """What the run promises beside what every run does."""
        return Promises()
