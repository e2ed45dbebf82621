"""The stores under test."""

from faults.stores.bridgemq import BridgeMQ
from faults.stores.bullmq import BullMQ
from faults.stores.monque import Monque
from faults.stores.pgboss import PgBoss
from faults.stores.store import Store

STORES: dict[str, type[Store]] = {one.protocol: one for one in (BullMQ, BridgeMQ, PgBoss, Monque)}

__all__ = ["STORES", "Store"]
