"""The stores under test."""

from faults.stores.bridgemq import BridgeMQ
from faults.stores.bullmq import BullMQ
from faults.stores.clustered import ClusteredBridgeMQ, ClusteredBullMQ
from faults.stores.monque import Monque
from faults.stores.pgboss import PgBoss
from faults.stores.store import Store
from faults.stores.watched import WatchedBridgeMQ, WatchedBullMQ

STORES: dict[str, type[Store]] = {one.protocol: one for one in (BullMQ, BridgeMQ, PgBoss, Monque)}
WITH_REPLICAS: dict[str, type[Store]] = {**STORES, "bullmq": WatchedBullMQ, "bridgemq": WatchedBridgeMQ}
"""Stores that can change their primary."""
ON_CLUSTERS: dict[str, type[Store]] = {"bullmq": ClusteredBullMQ, "bridgemq": ClusteredBridgeMQ}

__all__ = ["ON_CLUSTERS", "STORES", "WITH_REPLICAS", "Store"]
