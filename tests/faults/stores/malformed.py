"""Records that other programs could have put into a store, past jobwire: malformed, in the middle of good ones."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

from bson import ObjectId

from faults.stores.bridgemq import BridgeMQ
from faults.stores.bullmq import BullMQ
from faults.stores.monque import Monque
from faults.stores.pgboss import PgBoss
from faults.stores.store import Store


def insert_malformed(store: Store, number: int) -> int:
    """Inserts so many records. Returns how many of them are jobs, and must end as failed."""
    match store:
        case BullMQ():
            return _bullmq(store, number)
        case BridgeMQ():
            return _bridgemq(store, number)
        case Monque():
            return _monque(store, number)
        case PgBoss():
            return _pgboss(store, number)
        case _:
            raise AssertionError(f"no malformed records for {store.protocol}")


def _bullmq(store: BullMQ, number: int) -> int:
    """Every other one is an id without a job; the others have data that is not JSON."""
    base = f"{store.place}:work:"
    with store.client() as client, client.pipeline(transaction=False) as batch:
        for one in range(number):
            odd = f"odd-{uuid.uuid4().hex}"
            if one % 2:
                batch.hset(base + odd, mapping={"name": "odd", "data": "{not JSON", "opts": "{}", "timestamp": 1})
            batch.lpush(f"{base}wait", odd)
        batch.execute()
    return number


def _bridgemq(store: BridgeMQ, number: int) -> int:
    """Every other one is an id without data; the others have a target that is not an object."""
    with store.client() as client, client.pipeline(transaction=False) as batch:
        for one in range(number):
            odd = f"odd-{uuid.uuid4().hex}"
            if one % 2:
                about = {"jobId": odd, "type": "work", "payload": {}, "target": "all of them", "createdAt": 1}
                batch.set(f"{store.place}:jobs:data:{odd}", json.dumps(about))
            batch.lpush(f"{store.place}:jobs:waiting", odd)
        batch.execute()
    return number // 2


def _monque(store: Monque, number: int) -> int:
    """Every other one has a due time that is not a date; the others a number of failures that is not a number."""
    now = datetime.now(UTC)
    fine = {"name": "work", "status": "pending", "data": {}, "createdAt": now, "updatedAt": now}
    with store.client() as client:
        client[store.place]["monque_jobs"].insert_many(
            [
                {**fine, "_id": ObjectId(), "nextRunAt": now, "failCount": "three"}
                if one % 2
                else {**fine, "_id": ObjectId(), "nextRunAt": "soon", "failCount": 0}
                for one in range(number)
            ]
        )
    return number


def _pgboss(store: PgBoss, number: int) -> int:
    """Rows whose data no handler of the run can read: the columns' types admit nothing worse."""
    with store.client() as client:
        client.execute(
            f"INSERT INTO {store.place}.job (name, data, retry_limit, expire_seconds)"
            " SELECT 'work', CASE WHEN n %% 2 = 0 THEN NULL ELSE to_jsonb(n) END, 0, 60 FROM generate_series(1, %s) n",
            [number],
        )
    return number
