"""Options that only one protocol has: `Worker("render", handle, url, native=BridgeMQWorker(stack="python"))`.

Each class checks its values when it is made. None needs a driver, so they can be made where no extra is installed.
"""

from __future__ import annotations

from jobwire.native.bridgemq import BridgeMQWorker
from jobwire.native.bullmq import BullMQWorker
from jobwire.native.made import NATIVE, of_kind
from jobwire.native.monque import MonqueInstance, MonqueWorker
from jobwire.native.pgboss import PgBossWorker

__all__ = ["NATIVE", "BridgeMQWorker", "BullMQWorker", "MonqueInstance", "MonqueWorker", "PgBossWorker", "of_kind"]
