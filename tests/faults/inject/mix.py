"""Does one of the other faults at a time, at random: everything that can happen to a fleet beside each other."""

from __future__ import annotations

from faults.inject.cut_network import CutNetwork
from faults.inject.fail_over import FailOver
from faults.inject.fault import Fault
from faults.inject.fill_memory import FillMemory
from faults.inject.flush_scripts import FlushScripts
from faults.inject.half_open import HalfOpen
from faults.inject.kill_clients import KillClients
from faults.inject.kill_server import KillServer
from faults.inject.kill_worker import KillWorker
from faults.inject.lock_table import LockTable
from faults.inject.reset_connections import ResetConnections
from faults.inject.rolling_restart import RollingRestart
from faults.inject.slow_network import SlowNetwork
from faults.inject.suspend_server import SuspendServer
from faults.inject.suspend_worker import SuspendWorker
from faults.scene import Scene

_OFTEN: tuple[type[Fault], ...] = (KillWorker, KillWorker, SuspendWorker, RollingRestart, ResetConnections)
_SOMETIMES: tuple[type[Fault], ...] = (
    *(CutNetwork, FailOver, FillMemory, FlushScripts, HalfOpen, KillClients),
    *(KillServer, LockTable, SlowNetwork, SuspendServer),
)


class Mix(Fault):
    outage = True
    through_proxy = True
    times = 30
    times_short = 3

    async def inject(self, scene: Scene) -> None:
        protocol = scene.store.protocol
        kinds = [one for one in (*_OFTEN, *_SOMETIMES) if protocol in one.protocols]
        kinds = [one for one in kinds if one.stores[protocol] is type(scene.store)]
        fault = scene.chance.choice(kinds)()
        try:
            await fault.prepare(scene)
            await fault.inject(scene)
        finally:
            await fault.undo(scene)
