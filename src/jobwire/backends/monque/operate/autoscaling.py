"""The query by which an autoscaler counts the jobs of a queue.

It counts those that run, and the pending ones that are due by the server's clock. A delayed job, and the next run of
a schedule, are pending documents too, so they count from the moment that they are due. That needs MongoDB 4.2 or later.

A pause is side data in another collection, which the query of a count can't read.
"""

from __future__ import annotations

import json

from jobwire.backends.autoscaling import Scaling, Trigger
from jobwire.backends.monque.address import collection_address
from jobwire.backends.monque.rules import check_name
from jobwire.urls import Address

_DUE = {"status": "pending", "$expr": {"$lte": ["$nextRunAt", "$$NOW"]}}
_SECRET = {"connectionString": "the URL of MongoDB, which begins with mongodb:// or mongodb+srv://"}


def scaling(address: Address, queue: str, *, from_zero: bool) -> Scaling:
    check_name(queue)
    where = collection_address(address)
    query = json.dumps({"name": queue, "$or": [{"status": "processing"}, _DUE]})
    metadata = {"dbName": where.database, "collection": where.collection, "query": query}
    trigger = Trigger("jobs", "mongodb", metadata, "queryValue", tuple(_SECRET))
    return Scaling((trigger,), secrets=_SECRET, counted_when_paused="all")
